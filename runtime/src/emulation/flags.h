// The cc1 flags that emulated CUDA kernels need beside kClangFlags. They stand in the provenance like those.
#pragma once

#include <array>

namespace kvjit::rt {

inline constexpr std::array kEmulationFlags = std::to_array<const char*>({
    // A call before each load and store, which templates/cuda/machine/emulated/hooks.h answers.
    "-fsanitize=thread",
});

}  // namespace kvjit::rt
