#include "cuda/gpu_context.h"

namespace kvjit::rt {

ContextScope::~ContextScope() {
    cuda::Context popped = nullptr;
    if (api_ != nullptr) api_->context_pop(&popped);
}

GpuContext::~GpuContext() {
    if (primary_ == nullptr) return;
    const RelaxedCapture relaxed(driver_.api());
    driver_.api().primary_context_release(device_);
}

gen::Result<ContextScope> GpuContext::enter() {
    const cuda::DriverApi& api = driver_.api();
    cuda::Context current = nullptr;
    cuda::Device device = 0;
    cuda::Code code = api.context_get_current(&current);
    if (code == cuda::kSuccess && current != nullptr) code = api.context_get_device(&device);
    if (auto asked = driver_.check(code, "asking for the current context"); !asked) {
        return std::unexpected(asked.error());
    }
    if (current != nullptr && device == device_) return ContextScope(api, current, false);
    const gen::Result<cuda::Context> own = primary();
    if (!own) return std::unexpected(own.error());
    code = api.context_push(*own);
    if (auto pushed = driver_.check(code, "making the GPU's context current"); !pushed) {
        return std::unexpected(pushed.error());
    }
    return ContextScope(api, *own, true);
}

gen::Result<cuda::Context> GpuContext::primary() {
    if (cuda::Context kept = primary_.load(std::memory_order_acquire)) return kept;
    const std::lock_guard lock(mutex_);
    if (primary_ == nullptr) {
        const RelaxedCapture relaxed(driver_.api());
        cuda::Context context = nullptr;
        const cuda::Code code = driver_.api().primary_context_retain(&context, device_);
        if (auto made = driver_.check(code, "making the GPU's context"); !made) return std::unexpected(made.error());
        primary_.store(context, std::memory_order_release);
    }
    return primary_.load();
}

gen::Result<bool> GpuContext::keep_if_primary(cuda::Context context) {
    if (primary_.load(std::memory_order_acquire) == nullptr) {
        unsigned flags = 0;
        int active = 0;
        const cuda::Code code = driver_.api().primary_context_get_state(device_, &flags, &active);
        if (auto asked = driver_.check(code, "asking for the GPU's context"); !asked) {
            return std::unexpected(asked.error());
        }
        if (active == 0) return false;
    }
    const gen::Result<cuda::Context> own = primary();
    if (!own) return std::unexpected(own.error());
    return *own == context;
}

}  // namespace kvjit::rt
