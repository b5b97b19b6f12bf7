// Blocks of which some are a GPU's memory, moved by its driver.
#pragma once

#include "blocks/work.h"
#include "cuda/gpu_context.h"

namespace kvjit::rt {

/// Thread-safe. The driver outlives it.
class GpuBlocks {
public:
    /// `device`: the driver's handle.
    GpuBlocks(const Driver& driver, cuda::Device device) : driver_(driver), context_(driver, device) {}

    /// Enqueues everything on `stream`. `first`, `second`: where the caches are; not both on the host. Errors:
    /// KVJIT_CUDA_ERROR, KVJIT_OUT_OF_MEMORY; some of it may have been enqueued.
    gen::Result<void> move(std::span<const BlockWork> works, kvjit_memory first, kvjit_memory second, void* stream);

private:
    const Driver& driver_;
    GpuContext context_;
};

/// Those of an ordinal: the process's, alive until it ends. Errors: KVJIT_CUDA_ERROR, KVJIT_BAD_ARGUMENT.
gen::Result<GpuBlocks*> gpu_blocks(std::int64_t ordinal);

}  // namespace kvjit::rt
