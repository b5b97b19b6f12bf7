// A block of a grid: its warps, and the barrier that they share.
#pragma once

#include <string>
#include <vector>

#include "ptx/machine/warp.h"

namespace kvjit::ptx {

class Block {
public:
    /// `state` says which block it is; `shared_bytes` of shared memory are new.
    Block(const Kernel& kernel, BlockState state, u32 shared_bytes);
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;

    bool is_done() const { return running_.empty(); }
    /// Lets a warp run for a while, both chosen at random; opens the barrier when all have come. Errors: Fault.
    void take_turn(Random& random);
    /// What no fence has made visible yet.
    LateStores& stores() { return state_.stores; }

private:
    void meet();
    void check_warpgroups() const;

    [[noreturn]] void refuse(const Warp& waiting, const Warp& other) const;
    BlockState state_;
    std::vector<Warp> warps_;
    std::vector<u32> running_;  // warps that neither wait nor have ended
};

}  // namespace kvjit::ptx
