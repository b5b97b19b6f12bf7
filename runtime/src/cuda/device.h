// Where CUDA kernels run: on a GPU through the driver, or in the emulator on this machine's CPU. Plans use only this
// interface.
#pragma once

#include <cstddef>
#include <optional>

#include "generator/error.h"

namespace kvjit::rt {

/// A grid of blocks (x, y), each of `threads` threads with `shared_bytes` of dynamic shared memory.
struct Grid {
    unsigned x = 1;
    unsigned y = 1;
    unsigned threads = 1;
    unsigned shared_bytes = 0;
};

/// The stream whose queued work a write to memory follows; or none: then the write is done when the call returns.
using StreamOrder = std::optional<void*>;
inline constexpr std::nullopt_t kAtOnce = std::nullopt;

/// Thread-safe. Errors: KVJIT_CUDA_ERROR with the message of the driver, or of the emulator's checks.
class Device {
public:
    virtual ~Device() = default;

    /// Call before the first launch of a kernel with up to `shared_bytes`: loads it, so that runs don't, and retains
    /// the GPU's primary context, if that is the current one, for the lifetime of the device. May be repeated.
    virtual gen::Result<void> prepare_kernel(void* kernel, unsigned shared_bytes) {
        (void)kernel, (void)shared_bytes;
        return {};
    }

    /// Enqueues a kernel, Image::entry(), on `stream` (a CUstream; the emulator runs it at once). `args` is copied.
    /// Allocates nothing, synchronises nothing; an empty grid is no launch.
    virtual gen::Result<void> launch(void* kernel, const Grid& grid, const void* args, std::size_t args_bytes,
                                     void* stream) = 0;

    /// At least 256-byte aligned. `bytes` is never 0. Errors: KVJIT_OUT_OF_MEMORY.
    virtual gen::Result<void*> allocate(std::size_t bytes) = 0;
    virtual void release(void* memory) noexcept = 0;
    /// Both are done at once if the stream is being captured: no graph gets them. `from` may be freed afterwards.
    virtual gen::Result<void> upload(void* to, const void* from, std::size_t bytes, StreamOrder order) = 0;
    virtual gen::Result<void> zero(void* to, std::size_t bytes, StreamOrder order) = 0;
    /// Waits for the stream's queued work. Errors: failures of that work since the last call.
    virtual gen::Result<void> synchronize(void* stream) = 0;
    /// Whether the stream's work goes into a graph; nothing may wait for it then.
    virtual bool is_capturing(void* stream) {
        (void)stream;
        return false;
    }
    /// Waits for the stream's queued work, then copies to host memory.
    virtual gen::Result<void> download(void* to, const void* from, std::size_t bytes, void* stream) = 0;

    /// Streaming multiprocessors, which a grid should fill.
    virtual int multiprocessors() const = 0;
};

}  // namespace kvjit::rt
