// The primitives' calls of the emulator. These functions stay out of line and take operands in registers: else arrays
// of the kernel would have to lie in memory, where each access to them is checked.
#pragma once

#include "common/types.h"
#include "cuda/machine/emulated/half.h"
#include "cuda/machine/emulated/hooks.h"
#include "cuda/machine/emulated/matrix.h"
#include "cuda/machine/emulated/thread.h"

#pragma clang attribute push(__attribute__((noinline, disable_sanitizer_instrumentation)), apply_to = function)

namespace kvjit::emulation {

// A fiber keeps its indices for life, so the optimiser may merge these calls.
[[gnu::const]] inline i32 own_index() {
    return this_thread().index;
}
[[gnu::const]] inline i64 own_block_x() {
    return this_thread().block_x;
}
[[gnu::const]] inline i64 own_block_y() {
    return this_thread().block_y;
}

inline void meet(Collective kind, Site site) {
    Thread& self = this_thread();
    if (kind == Collective::kBarrier)
        self.services->barrier(self, site);
    else
        self.services->collective(self, kind, site, nullptr, nullptr);
}

struct ShuffleLane {
    u64 value;
    i32 source;
};

inline void exchange(void* const* arguments) {
    u64 values[kWarpLanes];
    for (i32 l = 0; l < kWarpLanes; ++l) values[l] = static_cast<const ShuffleLane*>(arguments[l])->value;
    for (i32 l = 0; l < kWarpLanes; ++l) {
        auto& lane = *static_cast<ShuffleLane*>(arguments[l]);
        lane.value = values[lane.source & (kWarpLanes - 1)];
    }
}

inline u64 shuffle_bits(u64 value, i32 source, Site site) {
    ShuffleLane lane{value, source};
    Thread& self = this_thread();
    self.services->collective(self, Collective::kShuffle, site, &lane, exchange);
    return lane.value;
}

inline void collect_votes(void* const* arguments) {
    u32 votes = 0;
    for (i32 l = 0; l < kWarpLanes; ++l) votes |= (*static_cast<const u32*>(arguments[l]) & 1) << l;
    for (i32 l = 0; l < kWarpLanes; ++l) *static_cast<u32*>(arguments[l]) = votes;
}

inline u32 vote(u32 yes, Site site) {
    Thread& self = this_thread();
    self.services->collective(self, Collective::kBallot, site, &yes, collect_votes);
    return yes;
}

template <class T>
Floats<4> multiply(Floats<4> c, Lanes<u32, 4> a, Lanes<u32, 2> b, Site site) {
    MmaLane lane{c, a, b};
    Thread& self = this_thread();
    self.services->collective(self, Collective::kMma, site, &lane, multiply_matrices<T>);
    return lane.c;
}

inline Lanes<u32, 4> matrices(const void* row, bool transposed, Site site) {
    Lanes<u32, 4> registers;
    Thread& self = this_thread();
    self.services->load_matrices(self, reinterpret_cast<u32*>(&registers), row, transposed, site,
                                 __builtin_return_address(0));
    return registers;
}

inline void* own_shared_memory(i64 bytes, Site site) {
    Thread& self = this_thread();
    return self.services->shared_memory(self, bytes, site);
}

inline void start_copy(void* shared, const void* global, i64 bytes, bool valid) {
    Thread& self = this_thread();
    self.services->copy_async(self, shared, global, bytes, valid, __builtin_return_address(0));
}

inline void commit() {
    Thread& self = this_thread();
    self.services->commit_copies(self);
}

inline void wait(i32 pending) {
    Thread& self = this_thread();
    self.services->wait_copies(self, pending);
}

inline u32 add(unsigned* address, unsigned value) {
    Thread& self = this_thread();
    return self.services->atomic_add(self, address, value, __builtin_return_address(0));
}

inline void fence() {
    Thread& self = this_thread();
    self.services->thread_fence(self);
}

template <int kCount>
using WordsInMemory = u32 __attribute__((ext_vector_type(kCount), may_alias));

/// Checked as one access of the words' size and alignment, however the optimiser splits the load.
template <int kCount>
inline Lanes<u32, kCount> load_aligned(const void* from) {
    note_access(from, 4 * kCount, {false, 4 * kCount}, __builtin_return_address(0));
    return *static_cast<const WordsInMemory<kCount>*>(from);
}

template <int kCount>
inline void store_aligned(void* to, Lanes<u32, kCount> words) {
    note_access(to, 4 * kCount, {true, 4 * kCount}, __builtin_return_address(0));
    *static_cast<WordsInMemory<kCount>*>(to) = words;
}

}  // namespace kvjit::emulation

#pragma clang attribute pop
