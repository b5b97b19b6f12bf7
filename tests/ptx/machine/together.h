// Control flow, and instructions that lanes execute together.
#pragma once

#include "ptx/machine/warp.h"

namespace kvjit::ptx {

inline void branch(Warp& warp, const Instruction& in) {
    warp.branch(in);
}
inline void branch_together(Warp& warp, const Instruction& in) {
    warp.branch_together(in);
}
inline void ret(Warp& warp, const Instruction&) {
    warp.exit();
}

/// bar.sync 0, which all warps of the block are to meet at one place, as __syncthreads is specified (CUDA C++
/// Programming Guide, "Synchronization Functions"). compute-sanitizer's synccheck asks for that, too.
inline void barrier(Warp& warp, const Instruction& in) {
    if (in.immediates[0] != 0) throw Fault(FaultKind::kText, "bar.sync is known for barrier 0 alone");
    warp.wait_at_barrier({0, warp.index_of(in)});
}
/// barrier.sync number, threads: warps may be at different ones of the same number. Known for all threads of the block.
inline void barrier_of_many(Warp& warp, const Instruction& in) {
    if (in.immediates[0] < 1 || in.immediates[0] > 15)
        throw Fault(FaultKind::kText, "barriers of a count of threads are known from 1 to 15");
    if (in.immediates[1] != warp.block().threads) {
        throw Fault(FaultKind::kApart, "it waits for " + std::to_string(in.immediates[1]) +
                                           " threads, and the block has " + std::to_string(warp.block().threads));
    }
    warp.wait_at_barrier({in.immediates[0], 0});
}
/// Orders the lanes' accesses to memory, which no other instruction of a warp does.
inline void warp_barrier(Warp& warp, const Instruction& in) {
    warp.check_members(in.source(0));
    warp.pass_warp_barrier();
}

inline void ballot(Warp& warp, const Instruction& in) {
    warp.check_members(in.source(1));
    u32 results[kLanes];
    std::fill_n(results, kLanes, warp.predicate(in.source(0)) & warp.mask());
    warp.put(in.destination(0), results);
}

enum class Shuffle { kUp, kDown, kButterfly, kIndex };

/// The lane that `lane` reads, or -1 where it is out of the segment: ISA 9.7.9, shfl.sync, of its operands b and c.
template <Shuffle kShuffle>
int shuffle_source(int lane, u32 b, u32 c) {
    const int amount = static_cast<int>(b & 31), clamp = static_cast<int>(c & 31),
              segment = static_cast<int>(c >> 8 & 31);
    const int lowest = lane & segment, highest = lowest | (clamp & ~segment);
    switch (kShuffle) {
        case Shuffle::kUp:
            return lane - amount >= highest ? lane - amount : -1;
        case Shuffle::kDown:
            return lane + amount <= highest ? lane + amount : -1;
        case Shuffle::kButterfly:
            return (lane ^ amount) <= highest ? lane ^ amount : -1;
        case Shuffle::kIndex:
            return (lowest | (amount & ~segment)) <= highest ? lowest | (amount & ~segment) : -1;
    }
}

/// shfl.sync d[|p], a, b, c, membermask: a lane that reads out of its segment gets its own.
template <Shuffle kShuffle, bool kHasPredicate>
void shuffle(Warp& warp, const Instruction& in) {
    warp.check_members(in.source(3));
    const u32* a = warp.lanes<u32>(in.source(0));
    const u32* b = warp.lanes<u32>(in.source(1));
    const u32* c = warp.lanes<u32>(in.source(2));
    u32 results[kLanes] = {}, inside = 0;
    for (int l = 0; l < kLanes; ++l) {
        if (!warp.is_active(l)) continue;
        const int source = shuffle_source<kShuffle>(l, b[l], c[l]);
        const int from = source < 0 ? l : source;
        if (!warp.is_active(from)) {
            throw Fault(FaultKind::kUndefined, "lane " + std::to_string(from) + ", which is read, is not there", l);
        }
        results[l] = a[from];
        inside |= static_cast<u32>(source >= 0) << l;
    }
    warp.put(in.destination(0), results);
    if constexpr (kHasPredicate) warp.put_predicate(in.destination(1), inside);
}

}  // namespace kvjit::ptx
