#include "ptx/machine/block.h"

#include <algorithm>
#include <utility>

namespace kvjit::ptx {

Block::Block(const Kernel& kernel, BlockState state, u32 shared_bytes) : state_(std::move(state)) {
    state_.shared.reset(shared_bytes);
    const u32 count = (state_.threads + kLanes - 1) / kLanes;
    state_.warpgroups.resize(state_.threads / (kWarpsOfGroup * kLanes));
    warps_.reserve(count);
    for (u32 number = 0; number < count; ++number) {
        warps_.emplace_back(kernel, state_, number);
        running_.push_back(number);
    }
}

void Block::take_turn(Random& random) {
    constexpr u32 kLongest = 400;  // instructions: short enough for warps to overtake each other within a loop
    const u32 chosen = random.below(static_cast<u32>(running_.size()));
    Warp& warp = warps_[running_[chosen]];
    const Warp::State state = warp.run(static_cast<int>(1 + random.below(kLongest)));
    has_counted_ = warp.has_counted();
    if (state == Warp::State::kRuns) return;
    running_.erase(running_.begin() + chosen);
    if (running_.empty()) meet();
}

/// Two warps can't meet.
void Block::refuse(const Warp& waiting, const Warp& other) const {
    throw Fault(FaultKind::kApart, "warp " + std::to_string(waiting.number()) + " " + waiting.describe() +
                                       ", but warp " + std::to_string(other.number()) + " " + other.describe() +
                                       "; block (" + std::to_string(state_.x) + ", " + std::to_string(state_.y) + ")");
}

/// No warp can go on. Unless all have ended, all must be at the same barrier.
void Block::meet() {
    const auto is_done = [](const Warp& warp) { return warp.state() == Warp::State::kDone; };
    const auto ended = std::ranges::find_if(warps_, is_done);
    const auto waiting = std::ranges::find_if_not(warps_, is_done);
    if (waiting == warps_.end()) return check_warpgroups();
    if (ended != warps_.end()) refuse(*waiting, *ended);
    const auto elsewhere =
        std::ranges::find_if_not(warps_, [&](const Warp& warp) { return warp.barrier() == waiting->barrier(); });
    if (elsewhere != warps_.end()) refuse(*waiting, *elsewhere);
    check_warpgroups();
    state_.stores.barrier();
    constexpr u16 kMost = 0xffff;  // what accesses are told apart by has no more numbers
    if (state_.barriers == kMost)
        throw Fault(FaultKind::kText, "more than " + std::to_string(kMost) + " barriers of a block are not known");
    ++state_.barriers;
    for (Warp& warp : warps_) {
        warp.pass_barrier();
        running_.push_back(warp.number());
    }
}

/// Warps wait for each other here, or have ended: none can catch up.
void Block::check_warpgroups() const {
    for (u32 group = 0; group < state_.warpgroups.size(); ++group) {
        const auto lag = state_.warpgroups[group].lag();
        if (!lag) continue;
        const Warp& warp = warps_[group * kWarpsOfGroup + lag->warp];
        throw Fault(FaultKind::kApart, "warp " + std::to_string(warp.number()) + " " + warp.describe() +
                                           ", but another warp of its warpgroup has executed the wgmma of " +
                                           warp.where(lag->missing.at) + "; block (" + std::to_string(state_.x) + ", " +
                                           std::to_string(state_.y) + ")");
    }
}

}  // namespace kvjit::ptx
