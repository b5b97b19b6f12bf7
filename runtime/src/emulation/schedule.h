// Which thread of a block runs next: each round runs the threads that can, in an order drawn anew.
#pragma once

#include <vector>

#include "emulation/fiber.h"
#include "emulation/random.h"

namespace kvjit::emulation {

class Schedule {
public:
    Schedule(Stacks& stacks, Random& random) : stacks_(stacks), random_(random) {}

    /// Runs threads 0..count-1 from `entry` on, until all have left or one has aborted.
    void run(int count, void (*entry)());

    /// On a thread's own stack. Returns when another one has woken it.
    void wait(Fiber& self);
    void wake(int index) { next_.push_back(index); }
    // Neither returns. They don't say so to the compiler: sanitizers would look for the end of a stack that isn't the
    // thread's own.
    /// The thread is done.
    void leave();
    /// All threads are left where they stand.
    void abort();

private:
    Context& next();

    Stacks& stacks_;
    Random& random_;
    std::vector<int> round_;  // run from its end
    std::vector<int> next_;
    Context runner_;  // run's caller
};

}  // namespace kvjit::emulation
