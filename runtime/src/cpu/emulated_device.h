// CUDA kernels on this machine's CPU: libkvjit_emulation as a device.
#pragma once

#include <cstdint>
#include <memory>

#include "cpu/clang_compiler.h"
#include "cuda/device.h"

namespace kvjit::rt {

/// Opens the library, which is looked for beside the compiler. `compiler` tells lines, and outlives the device. `seed`:
/// of the order of blocks and threads. Launches run at once. Errors: KVJIT_CUDA_ERROR, KVJIT_OUT_OF_MEMORY.
gen::Result<std::unique_ptr<Device>> make_emulated_device(CpuCompiler& compiler, std::uint64_t seed);

}  // namespace kvjit::rt
