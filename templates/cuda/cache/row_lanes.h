// Rows of kHeadDim elements, spread over the lanes of a warp.
#pragma once

#include "common/spec_block.h"
#include "common/types.h"
#include "cuda/machine/contract.h"
#include "cuda/shape.h"

namespace kvjit {

KVJIT_INLINE i32 lane_index() {
    return thread_index() % kWarpSize;
}
KVJIT_INLINE i32 warp_index() {
    return thread_index() / kWarpSize;
}

/// Whether the check kernel has found a fault: then no other kernel does anything.
KVJIT_INLINE bool is_faulty(const abi::Launch& launch) {
    return launch.fault && *launch.fault != 0;
}

// ---- Two neighbouring elements of T as float32 ---------------------------------------------------------------------

KVJIT_INLINE void load_pair(float (&to)[2], const float* from) {
    u32 words[2];
    load8(words, from);
    to[0] = __builtin_bit_cast(float, words[0]);
    to[1] = __builtin_bit_cast(float, words[1]);
}
KVJIT_INLINE void load_pair(float (&to)[2], const f16_t* from) {
    u32 word[1];
    load4(word, from);
    to[0] = half_to_float(static_cast<u16>(word[0]));
    to[1] = half_to_float(static_cast<u16>(word[0] >> 16));
}
KVJIT_INLINE void load_pair(float (&to)[2], const bf16_t* from) {
    u32 word[1];
    load4(word, from);
    to[0] = bfloat16_to_float(static_cast<u16>(word[0]));
    to[1] = bfloat16_to_float(static_cast<u16>(word[0] >> 16));
}

KVJIT_INLINE float load_one(const float* from) {
    return *from;
}
KVJIT_INLINE float load_one(const f16_t* from) {
    return half_to_float(from->bits);
}
KVJIT_INLINE float load_one(const bf16_t* from) {
    return bfloat16_to_float(from->bits);
}

KVJIT_INLINE void store_pair(float* to, const float (&from)[2]) {
    const u32 words[2] = {__builtin_bit_cast(u32, from[0]), __builtin_bit_cast(u32, from[1])};
    store8(to, words);
}
KVJIT_INLINE void store_pair(f16_t* to, const float (&from)[2]) {
    const u32 word[1] = {pack_halves(from[0], from[1])};
    store4(to, word);
}
KVJIT_INLINE void store_pair(bf16_t* to, const float (&from)[2]) {
    const u32 word[1] = {pack_bfloat16s(from[0], from[1])};
    store4(to, word);
}

// ---- A row of float32: each lane has two of every 64 elements ------------------------------------------------------

inline constexpr int kLanePairs = (kHeadDim + 2 * kWarpSize - 1) / (2 * kWarpSize);

struct RowLanes {
    float pair[kLanePairs][2];
};

/// First element of the lane's pair c; kHeadDim or more: there is no such pair.
KVJIT_INLINE i32 pair_element(int c) {
    return c * 2 * kWarpSize + 2 * lane_index();
}

KVJIT_INLINE void clear_lanes(RowLanes& row) {
#pragma unroll
    for (int c = 0; c < kLanePairs; ++c) row.pair[c][0] = row.pair[c][1] = 0.0f;
}

/// Loads a row; zeros, without reading `from`, if it doesn't exist.
template <class T>
KVJIT_INLINE void load_lanes(RowLanes& row, const T* from, bool exists = true) {
    clear_lanes(row);
#pragma unroll
    for (int c = 0; c < kLanePairs; ++c) {
        if (exists && pair_element(c) < kHeadDim) load_pair(row.pair[c], from + pair_element(c));
    }
}

KVJIT_INLINE void add_weighted(RowLanes& row, const RowLanes& other, float factor) {
#pragma unroll
    for (int c = 0; c < kLanePairs; ++c) {
#pragma unroll
        for (int i = 0; i < 2; ++i) row.pair[c][i] = fma(factor, other.pair[c][i], row.pair[c][i]);
    }
}

template <class T>
KVJIT_INLINE void store_row(T* to, const RowLanes& row) {
#pragma unroll
    for (int c = 0; c < kLanePairs; ++c) {
        if (pair_element(c) < kHeadDim) store_pair(to + pair_element(c), row.pair[c]);
    }
}

/// Whether the caller has the row's first element.
KVJIT_INLINE bool has_first(const RowLanes&) {
    return lane_index() == 0;
}

template <class F>
KVJIT_INLINE void for_each_element(RowLanes& row, F&& f) {
#pragma unroll
    for (int c = 0; c < kLanePairs; ++c) {
#pragma unroll
        for (int i = 0; i < 2; ++i) f(row.pair[c][i]);
    }
}

// ---- A piece of a row of float32, a thread's own -------------------------------------------------------------------

struct RowPiece {
    static constexpr int kElements = 8;
    i32 first;
    float elements[kElements];
};

/// Loads the piece of a row, which begins at a multiple of 16 bytes; zeros, without reading `row`, if it doesn't exist.
KVJIT_INLINE void load_piece(RowPiece& piece, const float* row, bool exists = true) {
#pragma unroll
    for (int i = 0; i < RowPiece::kElements; i += 4) {
        u32 words[4] = {};
        if (exists) load16(words, row + piece.first + i);
#pragma unroll
        for (int k = 0; k < 4; ++k) piece.elements[i + k] = __builtin_bit_cast(float, words[k]);
    }
}

KVJIT_INLINE void add_weighted(RowPiece& piece, const RowPiece& other, float factor) {
#pragma unroll
    for (int i = 0; i < RowPiece::kElements; ++i) piece.elements[i] = fma(factor, other.elements[i], piece.elements[i]);
}

/// Stores the piece to its row, which begins at a multiple of 16 bytes.
template <class T>
KVJIT_INLINE void store_row(T* row, const RowPiece& piece) {
    constexpr int kOfAccess = 16 / sizeof(T);
#pragma unroll
    for (int i = 0; i < RowPiece::kElements; i += kOfAccess) {
        alignas(16) u32 words[4];
#pragma unroll
        for (int k = 0; k < kOfAccess; k += 2)
            store_pair(reinterpret_cast<T*>(words) + k, {piece.elements[i + k], piece.elements[i + k + 1]});
        store16(row + piece.first + i, words);
    }
}

KVJIT_INLINE bool has_first(const RowPiece& piece) {
    return piece.first == 0;
}

template <class F>
KVJIT_INLINE void for_each_element(RowPiece& piece, F&& f) {
#pragma unroll
    for (float& element : piece.elements) f(element);
}

// ---- Which sequence ------------------------------------------------------------------------------------------------

/// The sequence that `index` falls into: the last b in 0..count-1 with begin(b) <= index. begin never decreases, and
/// begin(0) <= index. The warp calls it together: each step compares at 32 places.
template <class Begin>
KVJIT_INLINE i64 find_sequence(i64 count, i64 index, Begin&& begin) {
    i64 low = 0, high = count;  // the answer is in low..high-1
    while (high - low > 1) {
        const i64 step = (high - low + kWarpSize - 1) / kWarpSize;
        const i64 probe = low + lane_index() * step;
        // Ones, then zeros; lane 0's bit is a one.
        const u32 below = ballot(probe < high && begin(probe) <= index);
        low += (count_ones(below) - 1) * step;
        high = low + step < high ? low + step : high;
    }
    return low;
}

}  // namespace kvjit
