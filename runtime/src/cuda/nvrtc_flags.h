// The flags of every compile by NVRTC. They are in the provenance; the architecture is part of the identity.
#pragma once

#include <array>

namespace kvjit::rt {

inline constexpr std::array kNvrtcFlags = std::to_array<const char*>({
    "--std=c++20",
    "--device-as-default-execution-space",  // templates mark no function as __device__
    "--minimal",                            // no builtin types and functions beyond the language: templates need none
    "--fmad=true",                          // as -ffp-contract=on: a*b+c rounds once where an expression writes it
    "-Xptxas=-v",                           // registers, spills and shared memory go into the log
});

}  // namespace kvjit::rt
