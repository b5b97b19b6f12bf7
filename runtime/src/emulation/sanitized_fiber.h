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

/// A shadow stack. Functions that a fiber never returned from stay on it, so that it is made anew now and then.
class SanitizedFiber {
public:
    void start(void*, std::size_t) {
        if (own_ && ++starts_ % kStarts != 0) return;
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
    static constexpr int kStarts = 1000;

    void* fiber_ = nullptr;
    bool own_ = false;
    int starts_ = 0;
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
