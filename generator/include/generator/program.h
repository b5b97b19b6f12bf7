// Lowering: a spec becomes programs, the units of identity, compiling and caching. A program is a kind, a variant and
// the list of constants that shape its code. That one list is both its identity and its spec block.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "generator/error.h"
#include "generator/spec.h"
#include "generator/target.h"
#include "generator/variant.h"

namespace kvjit::gen {

struct ProgramInfo {
    ProgramKind kind;
    std::string_view name;   // "attend_decode"
    std::string_view entry;  // "kvjit_attend_decode"
    kvjit_programs bit;      // KVJIT_PROGRAM_DECODE
    std::string_view label;  // "decode", as kvjit_programs and users have it
};
/// In the order of the bits.
std::span<const ProgramInfo> program_infos();
const ProgramInfo& program_info(ProgramKind kind);
/// Bits of kvjit_programs.
inline constexpr std::uint32_t kProgramBits = (1U << kProgramKinds) - 1;

/// One line of the spec block: `constexpr int kHeadDim = 128;` or `using T1 = f16_t;`.
struct Constant {
    std::string type;  // "int", "bool" or "using"
    std::string name;
    std::string value;
    bool operator==(const Constant&) const = default;
};

struct Program {
    ProgramKind kind;
    const Variant* variant;  // one of variants(); compared by address
    LaunchShape launch;      // CUDA: what a plan launches; follows from variant, constants and target
    std::vector<Constant> constants;
};

/// The programs of a validated spec, in the order in which a call runs them. CUDA kernels check index arrays, which the
/// host can't read, and merge what they have split. Errors: KVJIT_BAD_SPEC where a program has no variant that serves.
Result<std::vector<Program>> lower(const KernelSpec& spec, const Target& target);

/// Bits of kvjit_programs: those that the spec has on the backend.
std::uint32_t program_bits(const KernelSpec& spec, Backend backend);

/// For each of those programs, which variants declined and why, and which one serves; also where none does.
std::string explain(const KernelSpec& spec, const Target& target, std::uint32_t programs);

/// New tokens of a sequence that attend_decode takes, at most; attend_prefill takes longer ones. 0: it takes all.
int decode_tokens(const KernelSpec& spec, Backend backend);

/// Constants that the target adds to each program's spec block: kVectorBytes, kHasFma, kHasF16c, ... or kMaxSharedBytes
std::vector<Constant> target_constants(const Target& target);

/// "attend_decode;variant=simd;revision=1;kHeadDim=128;...;abi=1;x86_64-unknown-linux-gnu:...": equal exactly where the
/// code must be equal.
std::string identity_text(const Program& program, const Target& target);

}  // namespace kvjit::gen
