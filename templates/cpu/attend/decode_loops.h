// The two inner loops of decode: scores of a tile of query rows, and their sums of values. The arithmetic of one row
// doesn't depend on the others of its tile. Vectors here are as wide as a whole register tile, so that one operation
// of the source stands for several instructions, which also makes it quicker to optimise.
#pragma once

#include "cpu/attend/lanes.h"
#include "cpu/attend/rows.h"

namespace kvjit {

/// Rows of a tile with 4 keys, as many as let its accumulators fit the registers.
inline constexpr int kQuadRows = kVectorBytes / 16;
constexpr int tiles_of(int rows) {
    return (kGroup + rows - 1) / rows;
}
constexpr int tile_rows() {
    int rows = 1;
    while (rows < kGroup && rows < kQuadRows) rows *= 2;
    return 2 * tiles_of(2 * kQuadRows) == tiles_of(kQuadRows) ? 2 * kQuadRows : rows;
}
/// Rows of a tile, query heads of one token and kv head. A key is loaded once for all of them: twice as many with half
/// as many keys, where that doesn't pad more.
inline constexpr int kRows = tile_rows();
inline constexpr int kTilesPerToken = tiles_of(kRows);
/// Keys scored together: a transposing sum turns 4 accumulators, a row's or two rows', into neighbouring scores.
inline constexpr int kKeys = kRows > kQuadRows ? 2 : 4;
/// Elements of a value row summed together: 4 registers, or 2, for each of kRows rows.
inline constexpr int kSpan = kVectorBytes * kKeys / 4;

inline constexpr int kChunkKeys = static_cast<int>(abi::kChunk);
/// Floats from one row's scores to the next row's. A power of two would crowd a few sets of the processor's cache.
inline constexpr int kScoreStride = kChunkKeys + 16;

inline constexpr int kRowBytes = static_cast<int>(bytes_of<T2>(kHeadDim));
/// Prefetch distances in rows. A row is fetched into the second-level cache kAhead rows early, enough to cover memory's
/// latency, and into the first kNear rows early: some processors have few lines under way to that from memory.
inline constexpr int kAhead = kHeadInner ? 32 : kRowBytes >= 1536 ? 8 : kRowBytes <= 192 ? 64 : 12288 / kRowBytes;
inline constexpr int kNear = kHeadInner ? 4 : 8;
using ChunkRows = RowList<kChunkKeys + kAhead>;

// ---- Scores --------------------------------------------------------------------------------------------------------

/// kLanes elements of each of the tile's rows. A tile's queries are kVectors lines.
using QueryLine = vf<kRows * kLanes>;

/// A key's lanes, repeated for each of the tile's rows.
template <int... I>
KVJIT_INLINE QueryLine repeat_for_rows(vf<kLanes> key, Sequence<int, I...>) {
    return __builtin_shufflevector(key, key, (I % kLanes)...);
}

// Four vectors a, b, c, d are summed and transposed, in each block of four lanes (a02: a0 + a2):
//     ab = mix_pairs<0>(a, b) + mix_pairs<2>(a, b)  =  a0 b0 a1 b1 + a2 b2 a3 b3  =  a02 b02 a13 b13; cd likewise
//     mix_quads<0>(ab, cd) + mix_quads<2>(ab, cd)   =  a02 b02 c02 d02 + a13 b13 c13 d13
template <int kPart, int N, int... I>
KVJIT_INLINE vf<N> mix_pairs(vf<N> a, vf<N> b, Sequence<int, I...>) {
    return __builtin_shufflevector(a, b, (I / 4 * 4 + I % 4 / 2 + I % 2 * N + kPart)...);
}
template <int kPart, int N, int... I>
KVJIT_INLINE vf<N> mix_quads(vf<N> a, vf<N> b, Sequence<int, I...>) {
    return __builtin_shufflevector(a, b, (I / 4 * 4 + I % 2 + I % 4 / 2 * N + kPart)...);
}
/// The lower (kPart 0) or upper (kPart 1) half of each kFrom lanes.
template <int kFrom, int kPart, int N, int... I>
KVJIT_INLINE vf<N / 2> halves(vf<N> v, Sequence<int, I...>) {
    return __builtin_shufflevector(v, v, (I / (kFrom / 2) * kFrom + I % (kFrom / 2) + kPart * kFrom / 2)...);
}

/// Sums each kFrom lanes to 4.
template <int kFrom, int N>
KVJIT_INLINE vf<N / kFrom * 4> fold(vf<N> v) {
    if constexpr (kFrom == 4)
        return v;
    else
        return fold<kFrom / 2, N / 2>(halves<kFrom, 0, N>(v, Lanes<N / 2>{}) + halves<kFrom, 1, N>(v, Lanes<N / 2>{}));
}

/// The sums of each kLanes lanes of a, b, c and d.
template <int N>
KVJIT_INLINE vf<N / kLanes * 4> sums_of_4(vf<N> a, vf<N> b, vf<N> c, vf<N> d) {
    const Lanes<N> lanes{};
    const vf<N> ab = mix_pairs<0, N>(a, b, lanes) + mix_pairs<2, N>(a, b, lanes);
    const vf<N> cd = mix_pairs<0, N>(c, d, lanes) + mix_pairs<2, N>(c, d, lanes);
    return fold<kLanes, N>(mix_quads<0, N>(ab, cd, lanes) + mix_quads<2, N>(ab, cd, lanes));
}

/// Stores each row's sums over its lanes as neighbouring scores.
template <int N>
KVJIT_INLINE void store_scores(float* scores, const vf<N> (&sums)[4]) {
    const vf<4 * kRows> quads = sums_of_4<N>(sums[0], sums[1], sums[2], sums[3]);
#pragma clang loop unroll(full)
    for (int r = 0; r < kRows; ++r)
        store<4>(scores + r * kScoreStride, vf<4>{quads[4 * r], quads[4 * r + 1], quads[4 * r + 2], quads[4 * r + 3]});
}

/// Two keys: a quad has the scores of row r and of the one kRows / 2 after it.
template <int N>
KVJIT_INLINE void store_scores(float* scores, const vf<N> (&sums)[2]) {
    const vf<2 * kRows> quads = sums_of_4<N / 2>(low_half<float, N>(sums[0]), low_half<float, N>(sums[1]),
                                                 high_half<float, N>(sums[0]), high_half<float, N>(sums[1]));
#pragma clang loop unroll(full)
    for (int r = 0; r < kRows / 2; ++r) {
        store<2>(scores + r * kScoreStride, vf<2>{quads[4 * r], quads[4 * r + 1]});
        store<2>(scores + (r + kRows / 2) * kScoreStride, vf<2>{quads[4 * r + 2], quads[4 * r + 3]});
    }
}

/// A tile's keys: their rows and, if quantised, their scales as float32.
struct KeyTile {
    const T2* codes[kKeys];
    alignas(64) float scales[kKeys][kScalesPerRow];
};

/// kLanes elements of key k from d on. kTail: only 8 are left, followed by zeros.
template <bool kTail>
KVJIT_INLINE vf<kLanes> load_key(const KeyTile& keys, int k, int d) {
    if constexpr (kTail)
        return pad(load_lanes<8>(keys.codes[k], keys.scales[k], d));
    else
        return load_lanes<kLanes>(keys.codes[k], keys.scales[k], d);
}

template <bool kTail>
KVJIT_INLINE void add_products(QueryLine (&sums)[kKeys], const float* query, const KeyTile& keys, int d) {
    const QueryLine line = load_raw<float, kRows * kLanes>(query + d * kRows);
#pragma clang loop unroll(full)
    for (int k = 0; k < kKeys; ++k) {
        const vf<kLanes> key = load_key<kTail>(keys, k, d);
        sums[k] = fma<kRows * kLanes>(repeat_for_rows(key, Lanes<kRows * kLanes>{}), line, sums[k]);
    }
}

KVJIT_INLINE const char* row_bytes(const ChunkRows& rows, i64 at, i64 head) {
    return reinterpret_cast<const char*>(rows.codes(at, head));
}

/// Prefetches row `at`, all of it.
KVJIT_INLINE void prefetch_row(const ChunkRows& rows, i64 at, i64 head) {
#pragma clang loop unroll(full)
    for (int byte = 0; byte < kRowBytes; byte += 64) prefetch_far(row_bytes(rows, at, head) + byte);
    if constexpr (kQuantised) prefetch_far(rows.scales(at, head));
}

/// Prefetches, while row `at` is read, elements d..d+N-1 of those that come later.
template <int N>
KVJIT_INLINE void prefetch_span(const ChunkRows& rows, i64 at, i64 head, int d) {
    const i64 first = bytes_of<T2>(d);
#pragma clang loop unroll(full)
    for (int byte = 0; byte < bytes_of<T2>(N); byte += 64) {
        prefetch_far(row_bytes(rows, at + kAhead, head) + first + byte);
        prefetch(row_bytes(rows, at + kNear, head) + first + byte);
    }
    if constexpr (kQuantised)
        if (d == 0) prefetch_far(rows.scales(at + kAhead, head));
}

/// Prefetches, while the kKeys rows from `at` on are read, part `share` of kVectors of those that come later.
KVJIT_INLINE void prefetch_share(const ChunkRows& rows, i64 at, i64 head, int share) {
    constexpr int kRowLines = (kRowBytes + 63) / 64, kLines = kKeys * kRowLines;
    const int end = (share + 1) * kLines / kVectors;
#pragma clang loop unroll(full)
    for (int line = share * kLines / kVectors; line < end; ++line) {
        const i64 row = at + line / kRowLines, byte = line % kRowLines * 64;
        prefetch_far(row_bytes(rows, row + kAhead, head) + byte);
        prefetch(row_bytes(rows, row + kNear, head) + byte);
    }
}

/// Keys at..at+kKeys-1 of a kv head. prefetch: later keys are prefetched meanwhile.
struct ScoredKeys {
    i64 at, head;
    bool prefetch;
};

/// sums[k] = products of the tile's queries and key k. Prefetches are spread over the arithmetic, since a burst of
/// them would delay loads.
template <bool kPrefetch>
KVJIT_INLINE void multiply_keys(QueryLine (&sums)[kKeys], const float* query, const KeyTile& keys,
                                const ChunkRows& rows, ScoredKeys scored) {
#pragma clang loop unroll(full)
    for (int k = 0; k < kKeys; ++k) {
        if constexpr (kPrefetch && kQuantised) prefetch_far(rows.scales(scored.at + kAhead + k, scored.head));
        sums[k] = QueryLine(0.0f);
    }
#pragma clang loop unroll(disable)
    for (int d = 0; d < kWholeDim; d += kLanes) {
        if constexpr (kPrefetch) prefetch_share(rows, scored.at, scored.head, d / kLanes);
        add_products<false>(sums, query, keys, d);
    }
    if constexpr (kWholeDim < kHeadDim) {
        if constexpr (kPrefetch) prefetch_share(rows, scored.at, scored.head, kVectors - 1);
        add_products<true>(sums, query, keys, kWholeDim);
    }
}

/// scores[r * kScoreStride + k] = query row r · key at+k, for kRows rows and kKeys keys.
KVJIT_INLINE void score_keys(float* scores, const float* query, const ChunkRows& rows, ScoredKeys scored) {
    KeyTile keys;
    QueryLine sums[kKeys];
#pragma clang loop unroll(full)
    for (int k = 0; k < kKeys; ++k) {
        keys.codes[k] = rows.codes(scored.at + k, scored.head);
        if constexpr (kQuantised) widen<kScalesPerRow>(keys.scales[k], rows.scales(scored.at + k, scored.head));
    }
    if (scored.prefetch)
        multiply_keys<true>(sums, query, keys, rows, scored);
    else
        multiply_keys<false>(sums, query, keys, rows, scored);
    store_scores<kRows * kLanes>(scores, sums);
}

// ---- Sums of values ------------------------------------------------------------------------------------------------

/// Whether key t is hidden from every row of the tile. Its value must then not be read.
KVJIT_INLINE bool hidden_from_tile(const float* probabilities, i64 t) {
    i32 differ = 0;
#pragma clang loop unroll(full)
    for (int r = 0; r < kRows; ++r)
        differ |= __builtin_bit_cast(i32, probabilities[r * kScoreStride + t]) ^ kHiddenBits;
    return differ == 0;
}

/// Keys begin..end-1 of the chunk and a kv head, whose values are summed. first: sums begin with them.
struct ValueRange {
    i64 begin, end, head;
    bool first;
};

/// sums[r][d..d+N-1] += probabilities[r][t] * value t [d..d+N-1], for kRows rows and the range's keys.
template <int N>
KVJIT_INLINE void add_span(float* sums, const float* probabilities, const ChunkRows& rows, ValueRange range, int d) {
    vf<N> sum[kRows];
#pragma clang loop unroll(full)
    for (int r = 0; r < kRows; ++r) sum[r] = range.first ? vf<N>(0.0f) : load<N>(sums + r * kPadDim + d);
#pragma clang loop unroll(disable)
    for (i64 t = range.begin; t < range.end; ++t) {
        prefetch_span<N>(rows, t, range.head, d);
        if (kMaskRank > 0 && hidden_from_tile(probabilities, t)) continue;
        const vf<N> value = load_lanes<N>(rows.codes(t, range.head), rows.scales(t, range.head), d);
#pragma clang loop unroll(full)
        for (int r = 0; r < kRows; ++r) sum[r] = fma<N>(vf<N>(probabilities[r * kScoreStride + t]), value, sum[r]);
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
