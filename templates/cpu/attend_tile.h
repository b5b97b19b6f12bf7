// The two inner loops of decode: scores of a tile of query rows, and their sums of values. The arithmetic of a (row, key)
// and of a (row, element) is the same whatever else shares the tile.
#pragma once

#include "cpu/attend_rows.h"

namespace kvjit {

/// Keys scored together: one transposed sum turns a row's 4 accumulators into 4 neighbouring scores.
inline constexpr int kKeys = 4;
/// Vectors of a value row summed together.
inline constexpr int kSpan = 4;
/// Query heads of one token and kv head that make a tile, so that kKeys * kRows accumulators fit the registers.
inline constexpr int kMaxRows = kVectorBytes / 16;
inline constexpr int kTilesPerToken = (kGroup + kMaxRows - 1) / kMaxRows;
inline constexpr int kRows = (kGroup + kTilesPerToken - 1) / kTilesPerToken;

inline constexpr int kChunkKeys = static_cast<int>(abi::kChunk);
/// Floats from one row's scores to the next one's: not a power of two, which would crowd a few sets of the cache.
inline constexpr int kScoreStride = kChunkKeys + 16;
/// Rows to ask memory for ahead of their use: about 4 KiB.
inline constexpr int kRowBytes = static_cast<int>(bytes_of<T2>(kHeadDim));
inline constexpr int kAhead = kHeadInner ? 8 : kRowBytes >= 512 ? 8 : kRowBytes <= 64 ? 64 : 4096 / kRowBytes;
using ChunkRows = RowList<kChunkKeys + kAhead>;

template <int kPart, int N, int... I>
KVJIT_INLINE vf<N> mix_pairs(vf<N> a, vf<N> b, Sequence<int, I...>) {
    return __builtin_shufflevector(a, b, (I / 4 * 4 + I % 4 / 2 + I % 2 * N + kPart)...);
}
template <int kPart, int N, int... I>
KVJIT_INLINE vf<N> mix_quads(vf<N> a, vf<N> b, Sequence<int, I...>) {
    return __builtin_shufflevector(a, b, (I / 4 * 4 + I % 2 + I % 4 / 2 * N + kPart)...);
}

/// Adds up each of four vectors.
template <int N>
KVJIT_INLINE vf<4> sums_of_4(vf<N> a, vf<N> b, vf<N> c, vf<N> d) {
    const Lanes<N> lanes{};
    const vf<N> ab = mix_pairs<0, N>(a, b, lanes) + mix_pairs<2, N>(a, b, lanes);
    const vf<N> cd = mix_pairs<0, N>(c, d, lanes) + mix_pairs<2, N>(c, d, lanes);
    const vf<N> abcd = mix_quads<0, N>(ab, cd, lanes) + mix_quads<2, N>(ab, cd, lanes);
    const vf<8> folded = [&] {
        if constexpr (N == 16)
            return low_half<float, 16>(abcd) + high_half<float, 16>(abcd);
        else
            return abcd;
    }();
    return low_half<float, 8>(folded) + high_half<float, 8>(folded);
}

/// Elements d.. of a key or value, kLanes of them; kTail: only 8 are left.
template <bool kTail>
KVJIT_INLINE vf<kLanes> load_vector(const T2* row, const T3* scales, int d) {
    if constexpr (kTail)
        return pad(load_cache<8>(row, scales, d));
    else
        return load_cache<kLanes>(row, scales, d);
}

struct KeySums {
    vf<kLanes> of[kKeys][kRows];
};

/// Adds the products of elements d.. .
template <bool kTail>
KVJIT_INLINE void add_products(KeySums& sums, const float* query, const T2* const* keys, const T3* const* scales, int d) {
#pragma clang loop unroll(full)
    for (int k = 0; k < kKeys; ++k) {
        const vf<kLanes> key = load_vector<kTail>(keys[k], scales[k], d);
#pragma clang loop unroll(full)
        for (int r = 0; r < kRows; ++r)
            sums.of[k][r] = fma<kLanes>(key, load<kLanes>(query + r * kPadDim + d), sums.of[k][r]);
    }
}

/// scores[r * kScoreStride + k] = query row r · key at+k, for kRows rows and kKeys keys.
KVJIT_INLINE void score_keys(float* scores, const float* query, const ChunkRows& rows, i64 at, i64 head) {
    const T2* keys[kKeys];
    const T3* scales[kKeys];
    KeySums sums;
#pragma clang loop unroll(full)
    for (int k = 0; k < kKeys; ++k) {
        keys[k] = rows.codes(at + k, head);
        scales[k] = rows.scales(at + k, head);
        for (int r = 0; r < kRows; ++r) sums.of[k][r] = vf<kLanes>(0.0f);
    }
#pragma clang loop unroll_count(2)
    for (int d = 0; d < kWholeDim; d += kLanes) add_products<false>(sums, query, keys, scales, d);
    if constexpr (kWholeDim < kHeadDim) add_products<true>(sums, query, keys, scales, kWholeDim);
#pragma clang loop unroll(full)
    for (int r = 0; r < kRows; ++r)
        store<4>(scores + r * kScoreStride,
                 sums_of_4<kLanes>(sums.of[0][r], sums.of[1][r], sums.of[2][r], sums.of[3][r]));
}

/// Whether key t is hidden from every row of the tile. Then nothing of its value may be looked at.
KVJIT_INLINE bool hidden_from_tile(const float* probabilities, i64 t) {
    i32 differ = 0;
#pragma clang loop unroll(full)
    for (int r = 0; r < kRows; ++r)
        differ |= __builtin_bit_cast(i32, probabilities[r * kScoreStride + t]) ^ kHiddenBits;
    return differ == 0;
}

template <int kCount>
KVJIT_INLINE void ask_for_span(const ChunkRows& rows, i64 at, i64 head, int d) {
    const char* span = reinterpret_cast<const char*>(advance(rows.codes(at, head), d));
#pragma clang loop unroll(full)
    for (int byte = 0; byte < bytes_of<T2>(kCount * kLanes); byte += 64) prefetch(span + byte);
    if constexpr (kQuantised)
        if (d == 0) prefetch(rows.scales(at, head));
}

/// sums[r][d..] += probabilities[r][t] * value t [d..], for kRows rows, kCount vectors and t = begin..end-1; kTail: the
/// last vector has 8 elements. The row that is asked for ahead is so while `ask` holds.
template <int kCount, bool kTail>
KVJIT_INLINE void add_span(float* sums, const float* probabilities, const ChunkRows& rows, i64 begin, i64 end, i64 head,
                           int d, bool ask) {
    constexpr int kWhole = kCount - (kTail ? 1 : 0);
    vf<kLanes> sum[kRows][kCount];
#pragma clang loop unroll(full)
    for (int r = 0; r < kRows; ++r)
        for (int v = 0; v < kCount; ++v) sum[r][v] = load<kLanes>(sums + r * kPadDim + d + v * kLanes);
#pragma clang loop unroll(disable)
    for (i64 t = begin; t < end; ++t) {
        if (ask) ask_for_span<kCount>(rows, t + kAhead, head, d);
        if (kMaskRank > 0 && hidden_from_tile(probabilities, t)) continue;
        vf<kLanes> value[kCount];
#pragma clang loop unroll(full)
        for (int v = 0; v < kWhole; ++v)
            value[v] = load_vector<false>(rows.codes(t, head), rows.scales(t, head), d + v * kLanes);
        if constexpr (kTail)
            value[kWhole] = load_vector<true>(rows.codes(t, head), rows.scales(t, head), d + kWhole * kLanes);
#pragma clang loop unroll(full)
        for (int r = 0; r < kRows; ++r) {
            const vf<kLanes> probability(probabilities[r * kScoreStride + t]);
            for (int v = 0; v < kCount; ++v) sum[r][v] = fma<kLanes>(probability, value[v], sum[r][v]);
        }
    }
#pragma clang loop unroll(full)
    for (int r = 0; r < kRows; ++r)
        for (int v = 0; v < kCount; ++v) store<kLanes>(sums + r * kPadDim + d + v * kLanes, sum[r][v]);
}

/// The whole row: spans of kSpan whole vectors, then what is left.
KVJIT_INLINE void add_values(float* sums, const float* probabilities, const ChunkRows& rows, i64 begin, i64 end, i64 head,
                             bool ask) {
    constexpr int kSpanDim = kSpan * kLanes;
    constexpr int kSpansDim = kWholeDim - kWholeDim % kSpanDim;
    constexpr int kRest = kVectors - kSpansDim / kLanes;
#pragma clang loop unroll(disable)
    for (int d = 0; d < kSpansDim; d += kSpanDim)
        add_span<kSpan, false>(sums, probabilities, rows, begin, end, head, d, ask);
    if constexpr (kRest > 0)
        add_span<kRest, (kWholeDim < kHeadDim)>(sums, probabilities, rows, begin, end, head, kSpansDim, ask);
}

/// Asks memory for row `at` of `heads` heads, in the order in which they lie.
KVJIT_INLINE void ask_for(const ChunkRows& rows, i64 at, i64 head_begin, i64 heads) {
#pragma clang loop unroll(disable)
    for (i64 h = head_begin; h < head_begin + heads; ++h) {
        const char* row = reinterpret_cast<const char*>(rows.codes(at, h));
#pragma clang loop unroll(full)
        for (int byte = 0; byte < kRowBytes; byte += 64) prefetch(row + byte);
        if constexpr (kQuantised) prefetch(rows.scales(at, h));
    }
}

}  // namespace kvjit
