// Host memory that the GPU reaches at the same address, so that the tool and the tests run calls on a GPU without code
// for CUDA. Slow, which doesn't matter there; engines use device memory.
#pragma once

#include <cstddef>
#include <string>

#include "result.h"

namespace kvjit::tool {

/// Opens the driver and makes the GPU of `target` ("cuda", "cuda:N", "sm_XX") this thread's. Does nothing for targets
/// without a GPU, and for unknown names, which kvjit_target_create refuses. Call it before any of the memory is
/// allocated. Errors: no driver, no such GPU.
Result<void> open_gpu(const std::string& target);

/// Alignment of addresses and sizes of memory for the GPU; 1 while no GPU is open.
std::size_t gpu_page_bytes();

/// Lets the GPU reach `bytes` from `memory` on, until hide_from_gpu. No effect where no GPU is open. Throws
/// std::bad_alloc where the driver refuses.
void show_to_gpu(void* memory, std::size_t bytes);
void hide_from_gpu(void* memory) noexcept;

}  // namespace kvjit::tool
