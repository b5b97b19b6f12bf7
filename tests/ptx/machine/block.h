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
    /// Whether the last turn ended with an atomic operation.
    bool has_counted() const { return has_counted_; }
    /// What no fence has made visible yet.
    LateStores& stores() { return state_.stores; }

private:
    void meet();
    [[noreturn]] void refuse(const Warp& waiting, const Warp& other) const;
    void check_warpgroups() const;

    BlockState state_;
    std::vector<Warp> warps_;
    std::vector<u32> running_;  // warps that neither wait nor have ended
    bool has_counted_ = false;
};

}  // namespace kvjit::ptx
