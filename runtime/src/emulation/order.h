// What orders accesses to global memory of different blocks of a launch: a block that fences and then adds to a counter
// hands on what it did; one that adds to the counter later, and then fences, comes after that.
#pragma once

#include <unordered_map>
#include <vector>

#include "emulation/shadow.h"

namespace kvjit::emulation {

class Order {
public:
    void start_launch();
    void start_block(int threads);

    void fence(const Actor& actor);
    void atomic(const void* address, const Actor& actor);

    /// Whether what another block of the launch did is known to come before.
    bool before(const Mark& mark, const Actor& actor) const;

private:
    /// What a block had done when one of its threads handed it on.
    struct Release {
        Epoch block_start = 0;
        Mark fence;            // the thread's: covers what came before it, and what barriers had ordered before it
        Epoch all_fenced = 0;  // 0: none. Every thread of the block had fenced in that epoch, or later
    };
    /// What a thread has learnt from a counter.
    struct Acquire {
        Mark atomic;
        Epoch fenced = 0;  // 0: not yet. When that thread fenced
        std::vector<Release> releases;
    };

    static bool covers(const Release& release, const Mark& mark);
    static void add(std::vector<Release>& releases, const Release& release);
    bool knows(const Acquire& acquire, const Actor& actor) const;
    Epoch all_fenced(const Actor& actor) const;

    std::vector<Mark> fences_;       // of each thread of the block, its last
    std::vector<Acquire> acquired_;  // by the block
    std::unordered_map<const void*, std::vector<Release>> counters_;
};

}  // namespace kvjit::emulation
