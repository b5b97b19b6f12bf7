// The backend of CUDA targets: NVRTC, the driver, GPUs.
#pragma once

#include <memory>
#include <string_view>

#include "backend.h"

namespace kvjit::rt {

std::unique_ptr<Backend> make_cuda_backend();

/// The target that GPU `ordinal` of this machine is: its architecture and its ordinal. Errors: KVJIT_CUDA_ERROR.
gen::Result<gen::Target> gpu_target(int ordinal);

/// A CUDA target by its name. What isn't in the generator's list is one if the NVRTC of this machine knows it: then it
/// is newer than this build. Errors: KVJIT_BAD_TARGET.
gen::Result<gen::Target> architecture_target(std::string_view name);

}  // namespace kvjit::rt
