// The backend of CUDA targets: NVRTC, the driver, GPUs.
#pragma once

#include <memory>
#include <string_view>

#include "backend.h"

namespace kvjit::rt {

std::unique_ptr<Backend> make_cuda_backend();

/// GPU `ordinal` of this machine as a target: its architecture and its ordinal. Errors: KVJIT_CUDA_ERROR.
gen::Result<gen::Target> gpu_target(int ordinal);

/// A CUDA target by its name. A name that the generator doesn't list is accepted if this machine's NVRTC knows it: that
/// NVRTC is newer than this build. Errors: KVJIT_BAD_TARGET.
gen::Result<gen::Target> architecture_target(std::string_view name);

}  // namespace kvjit::rt
