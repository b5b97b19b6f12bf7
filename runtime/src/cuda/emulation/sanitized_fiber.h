// What sanitizers, where this library is built with one, must be told of a change of stacks. Else nothing.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#elif defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

#include <cstddef>

namespace kvjit::emulation {

#if defined(__SANITIZE_THREAD__)

/// Its shadow stack, which lives as long as a fiber runs.
class SanitizedFiber {
public:
    ~SanitizedFiber() { forget(); }
    void start(void*, std::size_t) {
        forget();
        fiber_ = __tsan_create_fiber(0);
        own_ = true;
    }
    void adopt_thread() { fiber_ = __tsan_get_current_fiber(); }
    void enter() { __tsan_switch_to_fiber(fiber_, 0); }
    void forget() {
        if (own_) __tsan_destroy_fiber(fiber_);
        own_ = false;
    }

private:
    void* fiber_ = nullptr;
    bool own_ = false;
};

#else

class SanitizedFiber {
public:
    /// A fiber begins, on a stack that another one may have left in the midst of a function.
    void start([[maybe_unused]] void* stack, [[maybe_unused]] std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
        ASAN_UNPOISON_MEMORY_REGION(stack, bytes);
#endif
    }
    /// The running thread of the operating system is what fibers return to.
    void adopt_thread() {}
    /// The next instruction is the switch to this fiber.
    void enter() {}
    void forget() {}
};

#endif

}  // namespace kvjit::emulation
