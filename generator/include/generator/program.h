// Lowering: a spec becomes programs, the units of identity, compiling and caching. A program is a kind and the list of
// constants that shape its code. That one list is both its identity and its spec block.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "generator/error.h"
#include "generator/spec.h"
#include "generator/target.h"

namespace kvjit::gen {

enum class ProgramKind { kStore, kLoad, kAttendDecode, kAttendPrefill, kMerge, kCheck };
inline constexpr int kProgramKinds = 6;

struct ProgramInfo {
    ProgramKind kind;
    std::string_view name;   // "attend_decode"
    std::string_view entry;  // "kvjit_attend_decode"
    kvjit_phases phase;      // KVJIT_DECODE
};
const ProgramInfo& program_info(ProgramKind kind);

/// "cpu/attend_decode.cc", "cuda/attend_decode.cu": the same names for each backend.
std::string template_path(ProgramKind kind, const Target& target);

/// One line of the spec block: `constexpr int kHeadDim = 128;` or `using T1 = f16_t;`.
struct Constant {
    std::string type;  // "int", "bool" or "using"
    std::string name;
    std::string value;
    bool operator==(const Constant&) const = default;
};

struct Program {
    ProgramKind kind;
    std::vector<Constant> constants;
    bool operator==(const Program&) const = default;
};

/// The programs of a validated spec, in the order in which a call runs them. CUDA kernels check index arrays, which the
/// host can't read, and merge what they have split.
std::vector<Program> lower(const KernelSpec& spec, Backend backend = Backend::kCpu);

/// Constants that the target adds to each program's spec block: kVectorBytes, kHasFma, kHasF16c, ... or kMaxSharedBytes
std::vector<Constant> target_constants(const Target& target);

/// "attend_decode;kHeadDim=128;...;abi=1;x86_64-unknown-linux-gnu:...": equal exactly where the code must be equal.
std::string identity_text(const Program& program, const Target& target);

}  // namespace kvjit::gen
