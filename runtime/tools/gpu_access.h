// Host memory that the GPU reaches too, at the same address: how the tool and the tests run calls on a GPU without
// knowing CUDA. Slow, which doesn't matter to them. Engines use device memory.
#pragma once

#include <cstddef>
#include <string>

#include "result.h"

namespace kvjit::tool {

/// Opens the driver and makes the GPU of `target` ("cuda", "cuda:N", "sm_XX") this thread's. Nothing for targets that
/// need none, nor for what is no target: who opens it learns why. Call it before any of the memory is made. Errors: no
/// driver, no such GPU.
Result<void> open_gpu(const std::string& target);

/// Multiple of which addresses and sizes of memory for the GPU must be; 1 where no GPU is open.
std::size_t gpu_page_bytes();

/// Lets the GPU reach `bytes` from `memory` on, until hide_from_gpu. No effect where no GPU is open. Throws
/// std::bad_alloc where the driver refuses.
void show_to_gpu(void* memory, std::size_t bytes);
void hide_from_gpu(void* memory) noexcept;

}  // namespace kvjit::tool
