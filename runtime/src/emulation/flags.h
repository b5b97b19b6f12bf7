// How emulated CUDA kernels are compiled, beside kClangFlags. It stands in the provenance like those.
#pragma once

#include <array>
#include <string_view>

namespace kvjit::rt {

inline constexpr std::array kEmulationFlags = std::to_array<const char*>({
    // A call before each load and store, which templates/cuda/machine/emulated/hooks.h answers.
    "-fsanitize=thread",
    // The quickest code generation. Most kernels are compiled to be checked once.
    "-O0",
    "-disable-O0-optnone",  // which would keep all passes from the functions
});

/// In the place of kClangPasses. Loops stay loops: to unroll and to simplify them would double a compile's time, of
/// which a kernel that is run once gives nothing back.
inline constexpr std::string_view kEmulationPasses =
    "function(sroa<modify-cfg>),cgscc(inline),globaldce,halves,globaldce,"
    "function(sroa<modify-cfg>,early-cse,simplifycfg),-livedebugvalues";

}  // namespace kvjit::rt
