// Moves blocks between host and GPU memory, or within it, by the driver.
#pragma once

#include "blocks/work.h"
#include "cuda/gpu_context.h"

namespace kvjit::rt {

/// Thread-safe. The driver outlives it.
class GpuBlocks {
public:
    /// `device`: the driver's handle.
    GpuBlocks(const Driver& driver, cuda::Device device) : driver_(driver), context_(driver, device) {}

    /// Enqueues everything on `stream`. `first`, `second`: the memories of the caches; not both the host's. Errors:
    /// KVJIT_CUDA_ERROR, KVJIT_OUT_OF_MEMORY; some copies may have been enqueued by then.
    gen::Result<void> move(std::span<const BlockWork> works, kvjit_memory first, kvjit_memory second, void* stream);

private:
    const Driver& driver_;
    GpuContext context_;
};

/// The process's GpuBlocks of an ordinal, alive until it ends. Errors: KVJIT_CUDA_ERROR, KVJIT_BAD_ARGUMENT.
gen::Result<GpuBlocks*> gpu_blocks(std::int64_t ordinal);

}  // namespace kvjit::rt
