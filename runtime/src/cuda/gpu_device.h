// A GPU, through the driver.
#pragma once

#include <memory>

#include "cuda/device.h"
#include "cuda/gpu_info.h"

namespace kvjit::rt {

/// Work goes to the thread's current context if it is the GPU's, else to the GPU's primary context. A stream belongs to
/// that context, and memory is used in the one in which it was allocated. `driver` outlives the device, which outlives
/// kernels and memory. Creates no context yet.
std::unique_ptr<Device> make_gpu_device(const Driver& driver, const GpuInfo& gpu);

}  // namespace kvjit::rt
