// What the functions of the fake share.
#pragma once

#include <string>

#include "fake_cuda.h"

#define KVJIT_FAKE_EXPORT extern "C" __attribute__((visibility("default")))

namespace kvjit::test {

namespace cuda = rt::cuda;

/// One call: notes its name, holds the lock, and has the code that it shall fail with.
class Call {
public:
    explicit Call(const char* name);
    bool fails() const { return code_ != cuda::kSuccess; }
    cuda::Code code() const { return code_; }

    /// Also an error: no current context; a call that a capture forbids.
    Call& needs_context();
    Call& forbidden_in_capture();
    void misuse(const std::string& what);

    FakeCuda& state;

private:
    std::lock_guard<std::mutex> lock_;
    const char* name_;
    cuda::Code code_ = cuda::kSuccess;
};

/// A thread's contexts, the current one last.
std::vector<void*>& context_stack();
/// A thread's capture mode.
cuda::CaptureMode& capture_mode();
/// The handle of a device's primary context: made up.
void* primary_context(int device);
int device_of(void* context);

}  // namespace kvjit::test
