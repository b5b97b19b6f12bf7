// The backend of the target cuda-emulated: CUDA templates, the CPU's compiler and loader, the emulated device.
#pragma once

#include <memory>

#include "backend.h"

namespace kvjit::rt {

/// Reads KVJIT_DEBUG.
std::unique_ptr<Backend> make_emulated_backend(const BackendOptions& options);

}  // namespace kvjit::rt
