// Fibers: stacks of their own that one thread of the operating system switches between. x86-64, as emulated kernels
// are.
#pragma once

#include "cuda/machine/emulated/thread.h"
#include "emulation/sanitized_fiber.h"
#include "generator/error.h"

namespace kvjit::emulation {

class Multiprocessor;

/// What runs on a stack, while it doesn't.
struct Context {
    void* stack_pointer = nullptr;
    [[no_unique_address]] SanitizedFiber sanitized;
};

/// Leaves `from`, to go on where `to` was left.
void switch_context(Context& from, Context& to);

/// A thread of a block, as it lies at the top of its stack.
struct Fiber : Thread {
    Multiprocessor* owner = nullptr;
    Context context;
    i64 steps = 0;  // accesses to memory since it met other threads
};
static_assert(sizeof(Fiber) <= kThreadBytes);

/// Stacks in one mapping, each with a page below it that nobody may touch: an overflow stops the process and harms no
/// neighbour.
class Stacks {
public:
    Stacks() = default;
    ~Stacks();
    Stacks(const Stacks&) = delete;
    Stacks& operator=(const Stacks&) = delete;

    /// Makes `count` of them usable. Errors: KVJIT_OUT_OF_MEMORY.
    gen::Result<void> reserve(int count, Multiprocessor& owner);
    Fiber& operator[](int index) const;
    bool contains(const void* address) const;

    /// The next switch to the fiber calls `entry`, which must not return.
    static void prepare(Fiber& fiber, void (*entry)());

private:
    char* memory_ = nullptr;
    int ready_ = 0;
};

}  // namespace kvjit::emulation
