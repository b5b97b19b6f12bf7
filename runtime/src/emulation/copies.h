// Asynchronous copies of one thread, as late as the hardware may make them: they happen when they are waited for.
#pragma once

#include <vector>

#include "cuda/machine/emulated/thread.h"

namespace kvjit::emulation {

struct Copy {
    char* to;
    const char* from;  // null: zeros
    i64 bytes;
    const void* where;  // in the kernel's code
    long group;
};

class Copies {
public:
    void start() {
        pending_.clear();
        open_ = 0;
    }
    /// Spoils the destination: nobody may count on what it holds before the copy has arrived.
    void issue(char* to, const char* from, i64 bytes, const void* where);
    void commit() { ++open_; }
    /// Calls done(copy) for each copy that arrives, oldest first.
    template <class Done>
    void wait(int groups_left, Done&& done);

private:
    static void perform(const Copy& copy);

    std::vector<Copy> pending_;
    long open_ = 0;  // the group that the next copy belongs to
};

template <class Done>
void Copies::wait(int groups_left, Done&& done) {
    std::size_t arrived = 0;
    while (arrived < pending_.size() && pending_[arrived].group + groups_left < open_) ++arrived;
    for (std::size_t i = 0; i < arrived; ++i) {
        perform(pending_[i]);
        done(pending_[i]);
    }
    pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(arrived));
}

}  // namespace kvjit::emulation
