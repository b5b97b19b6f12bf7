// The backend of the target cuda-emulated: CUDA templates, the CPU's compiler and loader, the emulated device.
#pragma once

#include <memory>
#include <string>

#include "backend.h"

namespace kvjit::rt {

/// `compiler`: see make_compiler (cpu/clang_compiler.h).
std::unique_ptr<Backend> make_emulated_backend(const std::string& compiler);

}  // namespace kvjit::rt
