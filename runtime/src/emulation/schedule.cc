#include "emulation/schedule.h"

#include <utility>

namespace kvjit::emulation {

void Schedule::run(int count, void (*entry)()) {
    round_.clear();
    next_.clear();
    round_.reserve(count);  // nothing may throw on a thread's stack
    next_.reserve(count);
    for (int i = 0; i < count; ++i) {
        Stacks::prepare(stacks_[i], entry);
        wake(i);
    }
    runner_.sanitized.adopt_thread();
    switch_context(runner_, next());
}

Context& Schedule::next() {
    if (round_.empty()) {
        std::swap(round_, next_);
        random_.shuffle(round_);
    }
    if (round_.empty()) return runner_;
    const int index = round_.back();
    round_.pop_back();
    return stacks_[index].context;
}

void Schedule::wait(Fiber& self) {
    switch_context(self.context, next());
}

void Schedule::leave() {
    Context nobody;
    switch_context(nobody, next());
}

void Schedule::abort() {
    Context nobody;
    switch_context(nobody, runner_);
}

}  // namespace kvjit::emulation
