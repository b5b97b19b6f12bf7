// Chooses the CUDA context for work: the caller's, if it is current and of the right GPU, else the GPU's primary one,
// which the CUDA runtime uses, too.
#pragma once

#include <atomic>
#include <mutex>

#include "cuda/gpu_info.h"

namespace kvjit::rt {

/// Makes a context of the GPU current on this thread while it lives; then restores the one before.
class ContextScope {
public:
    ContextScope(const cuda::DriverApi& api, cuda::Context context, bool pushed)
        : api_(pushed ? &api : nullptr), context_(context) {}
    ContextScope(ContextScope&& other) noexcept : api_(other.api_), context_(other.context_) { other.api_ = nullptr; }
    ContextScope& operator=(ContextScope&&) = delete;
    ~ContextScope();

    cuda::Context context() const { return context_; }

private:
    const cuda::DriverApi* api_;  // null: nothing to pop
    cuda::Context context_;
};

/// While it lives, this thread may call what a stream capture elsewhere in the process would forbid: allocate and load.
class RelaxedCapture {
public:
    explicit RelaxedCapture(const cuda::DriverApi& api) : api_(api) { api_.thread_exchange_capture_mode(&mode_); }
    RelaxedCapture(const RelaxedCapture&) = delete;
    RelaxedCapture& operator=(const RelaxedCapture&) = delete;
    ~RelaxedCapture() { api_.thread_exchange_capture_mode(&mode_); }

private:
    const cuda::DriverApi& api_;
    cuda::CaptureMode mode_ = cuda::kCaptureRelaxed;
};

/// Thread-safe. The driver outlives it.
class GpuContext {
public:
    GpuContext(const Driver& driver, cuda::Device device) : driver_(driver), device_(device) {}
    GpuContext(const GpuContext&) = delete;
    GpuContext& operator=(const GpuContext&) = delete;
    /// Releases the primary context, if it was retained.
    ~GpuContext();

    /// Allocates nothing once the primary context is retained. Errors: KVJIT_CUDA_ERROR, KVJIT_OUT_OF_MEMORY.
    gen::Result<ContextScope> enter();
    /// Whether `context`, current here, is the primary one; if so, it is retained from now on.
    gen::Result<bool> keep_if_primary(cuda::Context context);

private:
    gen::Result<cuda::Context> primary();

    const Driver& driver_;
    const cuda::Device device_;
    std::mutex mutex_;  // locked to retain
    std::atomic<cuda::Context> primary_{nullptr};
};

}  // namespace kvjit::rt
