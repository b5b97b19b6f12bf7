// Host memory that the GPU reaches at the same address, so that the tool and the tests run calls on a GPU without code
// for CUDA. Slow, which doesn't matter there; engines use device memory.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "result.h"

namespace kvjit::gpu {
class Gpu;
}

namespace kvjit::tool {

/// The number of the GPU that `target`, a legal name, runs on, which for an architecture's is the first one; none for
/// targets without a GPU.
std::optional<int> gpu_ordinal(std::string_view target);

/// Opens the driver, and the GPU, which becomes this thread's and is kept until the process ends. Errors: no driver, no
/// such GPU.
Result<const gpu::Gpu*> find_gpu(int ordinal);

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
