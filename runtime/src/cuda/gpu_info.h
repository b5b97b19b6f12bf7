// A GPU as the driver describes it.
#pragma once

#include <string>

#include "cuda/driver.h"

namespace kvjit::rt {

struct GpuInfo {
    cuda::Device device = 0;  // the driver's handle
    int ordinal = 0;
    std::string name;  // "NVIDIA H200"
    int major = 0;     // compute capability
    int minor = 0;
    int multiprocessors = 0;
    int max_shared_bytes = 0;  // what one block may use, if a kernel opts in
};

/// The GPU of an ordinal, as CUDA_VISIBLE_DEVICES numbers them. Creates no context. Errors: KVJIT_CUDA_ERROR where
/// there is none, or it is older than kernels need.
gen::Result<GpuInfo> find_gpu(const Driver& driver, int ordinal);

/// "sm_90a": what kernels for exactly this GPU are compiled for.
std::string device_target_name(const GpuInfo& gpu);

}  // namespace kvjit::rt
