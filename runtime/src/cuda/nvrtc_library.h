// An open NVRTC, and the architectures that it knows.
#pragma once

#include <string>
#include <vector>

#include "cuda/nvrtc_api.h"

namespace kvjit::rt {

inline constexpr int kOldestNvrtc = 12040;  // --minimal, __builtin_bit_cast

struct NvrtcLibrary {
    nvrtc::Api api;
    int version;                     // 13000 for 13.0
    std::vector<int> architectures;  // 80, 90, 100, ascending
};

/// Stays open until the process ends. Errors: KVJIT_COMPILER_MISSING for a file that is no NVRTC, or one older than
/// kOldestNvrtc; KVJIT_CUDA_ERROR where it would crash on this machine's driver (check_driver_for_nvrtc).
gen::Result<NvrtcLibrary> open_nvrtc(const std::string& path);

}  // namespace kvjit::rt
