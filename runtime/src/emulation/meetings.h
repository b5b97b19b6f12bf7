// Where threads wait for each other: a warp's collectives and the block's barrier.
#pragma once

#include <string>
#include <vector>

#include "cuda/machine/emulated/thread.h"
#include "emulation/schedule.h"
#include "emulation/shadow.h"

namespace kvjit::emulation {

/// "shuffle at cuda/store.cu:40".
std::string describe(Collective kind, Site site);

/// All must come to the same line, and none may have returned or wait elsewhere: each misuse is found at the first
/// thread that shows it, so that none ends in waiting for ever.
class Meetings {
public:
    explicit Meetings(Schedule& schedule) : schedule_(schedule) {}

    void start(int threads);

    /// Each returns what is wrong, or an empty text once everybody has come.
    std::string meet_block(Fiber& self, Site site);
    std::string meet_warp(Fiber& self, Collective kind, Site site, void* argument, void (*work)(void* const*));
    std::string leave(Fiber& self);

    /// Barriers of the block, and of the warp, that have been passed: what separates accesses to memory.
    Epoch block_epoch() const { return block_epoch_; }
    Epoch warp_epoch(int warp) const { return warps_[warp].epoch; }
    void restart_epochs() { block_epoch_ = 0; }

private:
    struct Meeting {
        Collective kind = Collective::kBarrier;
        Site site{};
        int arrived = 0;
        int first = 0;      // a thread that waits
        int returned = -1;  // a thread that has left for good
    };
    struct Warp : Meeting {
        void* arguments[kWarpLanes];
        int at_barrier = -1;  // a lane that waits for the block
        Epoch epoch = 0;
    };

    static std::string join(Meeting& meeting, int index, Collective kind, Site site);

    Schedule& schedule_;
    int threads_ = 0;
    Meeting block_;
    std::vector<Warp> warps_;
    Epoch block_epoch_ = 0;
};

}  // namespace kvjit::emulation
