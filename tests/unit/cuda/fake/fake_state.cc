#include "fake_state.h"

#include <cstdint>
#include <new>

namespace kvjit::test {

FakeCuda* fake_cuda() {
    static FakeCuda state;
    return &state;
}

std::vector<void*>& context_stack() {
    thread_local std::vector<void*> stack;
    return stack;
}

cuda::CaptureMode& capture_mode() {
    thread_local cuda::CaptureMode mode{};
    return mode;
}

// Handles carry their device in the low digits: 0x1000 + device are primary contexts, others are a caller's own.
void* primary_context(int device) {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(0x1000 + device));
}
int device_of(void* context) {
    return static_cast<int>(reinterpret_cast<std::uintptr_t>(context) % 16);
}

void fake_cuda_reset() {
    FakeCuda& state = *fake_cuda();
    state.~FakeCuda();
    new (&state) FakeCuda;
    context_stack().clear();
}

void* fake_cuda_make_current(int device, void* context) {
    void* made = context != nullptr ? context : primary_context(device);
    context_stack().push_back(made);
    return made;
}

void* fake_cuda_current() {
    return context_stack().empty() ? nullptr : context_stack().back();
}

Call::Call(const char* name) : state(*fake_cuda()), lock_(state.mutex), name_(name) {
    state.calls.emplace_back(name);
    if (state.fail_at > 0 && --state.fail_at == 0) code_ = state.fail_code;
}

Call& Call::needs_context() {
    if (!fails() && context_stack().empty()) code_ = cuda::kInvalidContext;
    return *this;
}

Call& Call::forbidden_in_capture() {
    if (!fails() && state.capturing != nullptr && capture_mode() != cuda::kCaptureRelaxed) {
        code_ = cuda::kStreamCaptureUnsupported;
        misuse("spoils a capture");
    }
    return *this;
}

void Call::misuse(const std::string& what) {
    state.misuses.push_back(std::string(name_) + " " + what);
}

}  // namespace kvjit::test
