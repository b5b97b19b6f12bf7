// Sums of values of decode, for a tile of query rows. The arithmetic of one row doesn't depend on the others of its
// tile.
#pragma once

#include "cpu/attend/decode_tile.h"
#include "cpu/attend/lanes.h"

namespace kvjit {

/// The probabilities of a row, `scores` before, as factors: stored and read by the row's key t, or the pair that t
/// begins.
KVJIT_INLINE void store_factors(float* scores, i64 t, vf<kLanes> probabilities) {
    if constexpr (kPairs)
        store_raw<u16, kLanes>(reinterpret_cast<char*>(scores) + 2 * t, round_to_bfloat16<kLanes>(probabilities));
    else
        store<kLanes>(scores + t, probabilities);
}
KVJIT_INLINE Factor factor_at(const float* probabilities, i64 t) {
    using Aliased [[gnu::may_alias]] = Factor;
    return reinterpret_cast<const Aliased*>(probabilities)[t / kFactorElements];
}

/// Keys begin..end-1 of the chunk and a kv head, whose values are summed. first: sums begin with them.
struct ValueRange {
    i64 begin, end, head;
    bool first;

    KVJIT_INLINE bool holds(i64 t) const { return begin <= t && t < end; }
};

inline constexpr u32 kHiddenFactor = kPairs ? 0x80008000 : kHiddenBits;

/// Bits that are 0 where the probability of key t, or of a pair from t on, says "hidden" in every row of the tile. The
/// key's value must then not be read.
KVJIT_INLINE u32 seen_by_tile(const float* probabilities, i64 t) {
    u32 seen = 0;
#pragma clang loop unroll(full)
    for (int r = 0; r < kRows; ++r)
        seen |= __builtin_bit_cast(u32, factor_at(probabilities + r * kScoreStride, t)) ^ kHiddenFactor;
    return seen;
}

/// Elements d..d+N-1 of value t, or of values t and t+1 as pairs. In place of a value that must not be read stands its
/// neighbour: its probability is 0.
template <int N>
KVJIT_INLINE vec<Factor, N> load_values(const ChunkRows& rows, const ValueRange& range, u32 seen, i64 t, int d) {
    if constexpr (kPairs) {
        const bool both = kMaskRank == 0, low = seen & 0xffff, high = seen >> 16;
        const i64 even = range.holds(t) && (both || low) ? t : t + 1;
        const i64 odd = range.holds(t + 1) && (both || high) ? t + 1 : t;
        return pair_up<N>(load_raw<u16, N>(advance(rows.codes(even, range.head), d)),
                          load_raw<u16, N>(advance(rows.codes(odd, range.head), d)));
    } else {
        return as_factors(load_lanes<N>(rows.codes(t, range.head), rows.scales(t, range.head), d));
    }
}

/// sums[r][d..d+N-1] += probabilities[r][t] * value t [d..d+N-1], for kRows rows and the range's keys.
template <int N>
KVJIT_INLINE void add_span(float* sums, const float* probabilities, const ChunkRows& rows, ValueRange range, int d) {
    vf<N> sum[kRows];
#pragma clang loop unroll(full)
    for (int r = 0; r < kRows; ++r) sum[r] = range.first ? vf<N>(0.0f) : load<N>(sums + r * kPadDim + d);
#pragma clang loop unroll(disable)
    for (i64 t = range.begin / kFactorElements * kFactorElements; t < range.end; t += kFactorElements) {
#pragma clang loop unroll(full)
        for (int i = 0; i < kFactorElements; ++i) prefetch_span<N>(rows, t + i, range.head, d);
        const u32 seen = kMaskRank > 0 ? seen_by_tile(probabilities, t) : 1;
        if (kMaskRank > 0 && seen == 0) continue;
        const vec<Factor, N> value = load_values<N>(rows, range, seen, t, d);
#pragma clang loop unroll(full)
        for (int r = 0; r < kRows; ++r) {
            const Factor probability = factor_at(probabilities + r * kScoreStride, t);
            sum[r] = multiply_add<N>(vec<Factor, N>(probability), value, sum[r]);
        }
    }
#pragma clang loop unroll(full)
    for (int r = 0; r < kRows; ++r) store<N>(sums + r * kPadDim + d, sum[r]);
}

/// add_span for all elements: in spans of N, then of half as many, down to 8.
template <int N, int kFrom = 0>
KVJIT_INLINE void add_values(float* sums, const float* probabilities, const ChunkRows& rows, ValueRange range) {
    constexpr int kTo = kHeadDim - (kHeadDim - kFrom) % N;
#pragma clang loop unroll(disable)
    for (int d = kFrom; d < kTo; d += N) add_span<N>(sums, probabilities, rows, range, d);
    if constexpr (kTo < kHeadDim) add_values<N / 2, kTo>(sums, probabilities, rows, range);
}

}  // namespace kvjit
