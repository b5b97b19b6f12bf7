// The backend of CUDA targets: NVRTC, the driver, GPUs.
#pragma once

#include <memory>

#include "backend.h"

namespace kvjit::rt {

std::unique_ptr<Backend> make_cuda_backend();

/// The target that GPU `ordinal` of this machine is: its architecture and its ordinal. Errors: KVJIT_CUDA_ERROR.
gen::Result<gen::Target> gpu_target(int ordinal);

}  // namespace kvjit::rt
