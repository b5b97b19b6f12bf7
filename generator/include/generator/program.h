// Lowering: a spec becomes programs, the units of identity, compiling and caching. A program is a row of the table of
// programs, a variant and the list of constants that shape its code. That one list is both its identity and its spec
// block. docs/architecture.md tells how to add a variant or a program.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/shape.h"
#include "generator/error.h"
#include "generator/spec.h"
#include "generator/target.h"

namespace kvjit::gen {

/// One of the algorithms that a program has on a backend.
struct Variant {
    std::string_view name;           // "mma"; part of the identity
    std::string_view template_path;  // "cuda/attend_decode_mma.cu"
    /// Part of the identity: raised when the results or the arguments of its code change, so that no store serves older
    /// kernels for it. tests/unit/generator/revisions.txt ties it to the templates' text, and to flags and
    /// target_constants.
    int revision;
    /// Whether it supports the spec on the target. The error names the first thing that it doesn't support.
    Result<void> (*serves)(const KernelSpec&, const Target&);
    /// CUDA: the shape of its blocks. All zero on CPUs, where a call of the code is one item.
    LaunchShape (*launch)(const KernelSpec&, const Target&);
    bool uses_tiles = false;  // CPU: whether it computes with AMX's tile registers, or what stands for them
};

/// One line of the spec block: `constexpr int kHeadDim = 128;` or `using T1 = f16_t;`.
struct Constant {
    std::string type;  // "int", "bool" or "using"
    std::string name;
    std::string value;
    bool operator==(const Constant&) const = default;
};

/// A program: a row of the table in generator/src/program_table.cc.
struct ProgramInfo {
    /// How a backend runs the program.
    struct Use {
        std::uint32_t ops = 0;              // operators whose calls run it, as bits 1 << kvjit_op
        std::span<const Variant> variants;  // in order of preference: the first that serves is chosen
    };

    kvjit_programs bit;      // KVJIT_PROGRAM_DECODE
    std::string_view label;  // "decode", the name for users
    std::string_view name;   // "attend_decode"; part of the identity
    std::vector<Constant> (*constants)(const KernelSpec&, Backend);
    Use cpu, cuda;

    const Use& use(Backend backend) const { return backend == Backend::kCpu ? cpu : cuda; }
    /// The function that its templates define: "kvjit_attend_decode".
    std::string entry() const { return "kvjit_" + std::string(name); }
    /// The program's index in arrays with an element for each program: below programs().size().
    static std::size_t place_of(kvjit_programs bit) {
        return static_cast<std::size_t>(std::countr_zero(std::uint32_t{bit}));
    }
};

/// All programs, in the order in which a call runs them.
std::span<const ProgramInfo> programs();
/// The bits of all programs.
std::uint32_t known_programs();
/// "decode" of "attend_decode". Returns a name that no program has unchanged.
std::string_view label_of(std::string_view name);
/// Whether a call of the spec runs the program, on any backend.
bool runs(const KernelSpec& spec, kvjit_programs program);
/// The first of the program's variants on the target's backend that serves. Errors: KVJIT_BAD_SPEC with what the last
/// variant doesn't support.
Result<const Variant*> choose_variant(const ProgramInfo& info, const KernelSpec& spec, const Target& target);

struct Program {
    const ProgramInfo* info;  // one of programs()
    const Variant* variant;   // one of the info's; compared by address
    LaunchShape launch;       // CUDA: what a plan launches; follows from variant, constants and target
    std::vector<Constant> constants;
    bool uses_tiles;  // CPU: whether its code uses AMX's tile registers, which the system must permit
};

/// Whether any of them uses AMX's tile registers.
bool use_tiles(std::span<const Program> programs);

/// The spec as shapes of blocks see it; packed keys and values are such a cache's, too.
CacheFormat cache_format(const KernelSpec& spec);

/// The programs of a validated spec, in the order in which a call runs them. Errors: choose_variant's.
Result<std::vector<Program>> lower(const KernelSpec& spec, const Target& target);

/// The programs that the spec has on the backend, as bits of kvjit_programs.
std::uint32_t program_bits(const KernelSpec& spec, Backend backend);

/// A line for each variant of those of these programs that are in `programs`: "mma declines: t1 is f32; ...", "dot
/// serves", "... is not asked"; also where no variant serves.
std::string explain(const KernelSpec& spec, const Target& target, std::uint32_t programs);

/// Constants that the target adds to each program's spec block: kVectorBytes, kHasFma, kHasF16c, ... or kMaxSharedBytes
std::vector<Constant> target_constants(const Target& target);

/// "attend_decode;variant=simd;revision=1;kHeadDim=128;...;abi=1;x86_64-unknown-linux-gnu:...": equal exactly where the
/// code must be equal.
std::string identity_text(const Program& program, const Target& target);

}  // namespace kvjit::gen
