// Scores of decode: products of a tile of query rows and its keys. The arithmetic of one row doesn't depend on the
// others of its tile.
#pragma once

#include "cpu/attend/decode_tile.h"
#include "cpu/attend/lanes.h"

namespace kvjit {

/// kLanes factors of a query from element `from` on. kTail: only kTailElements elements are left, followed by zeros.
template <bool kTail>
KVJIT_INLINE vec<Factor, kLanes> load_query_factors(const T1* from) {
    if constexpr (kPairs)
        return load_pairs<kTail ? kTailElements : kLineElements>(from);
    else if constexpr (kTail)
        return as_factors(pad(load<8>(from)));
    else
        return as_factors(to_lanes(load<kLanes>(from)));
}

/// A key's factors, repeated for each of the tile's rows.
template <int... I>
KVJIT_INLINE QueryLine repeat_for_rows(vec<Factor, kLanes> key, Sequence<int, I...>) {
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

/// kLanes factors of key k from element d on. kTail: only kTailElements elements are left, followed by zeros.
template <bool kTail>
KVJIT_INLINE vec<Factor, kLanes> load_key(const KeyTile& keys, int k, int d) {
    if constexpr (kPairs)
        return load_pairs<kTail ? kTailElements : kLineElements>(advance(keys.codes[k], d));
    else if constexpr (kTail)
        return as_factors(pad(load_lanes<8>(keys.codes[k], keys.scales[k], d)));
    else
        return as_factors(load_lanes<kLanes>(keys.codes[k], keys.scales[k], d));
}

template <bool kTail>
KVJIT_INLINE void add_products(ProductLine (&sums)[kKeys], const Factor* query, const KeyTile& keys, int line) {
    const QueryLine factors = load_raw<Factor, kRows * kLanes>(query + line * kLanes * kRows);
#pragma clang loop unroll(full)
    for (int k = 0; k < kKeys; ++k) {
        const vec<Factor, kLanes> key = load_key<kTail>(keys, k, line * kLineElements);
        sums[k] = multiply_add<kRows * kLanes>(repeat_for_rows(key, Lanes<kRows * kLanes>{}), factors, sums[k]);
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
KVJIT_INLINE void multiply_keys(ProductLine (&sums)[kKeys], const Factor* query, const KeyTile& keys,
                                const ChunkRows& rows, ScoredKeys scored) {
#pragma clang loop unroll(full)
    for (int k = 0; k < kKeys; ++k) {
        if constexpr (kPrefetch && kQuantised) prefetch_far(rows.scales(scored.at + kAhead + k, scored.head));
        sums[k] = ProductLine(0.0f);
    }
#pragma clang loop unroll(disable)
    for (int line = 0; line < kWholeLines; ++line) {
        if constexpr (kPrefetch) prefetch_share(rows, scored.at, scored.head, line);
        add_products<false>(sums, query, keys, line);
    }
    if constexpr (kWholeLines < kLines) {
        if constexpr (kPrefetch) prefetch_share(rows, scored.at, scored.head, kWholeLines);
        add_products<true>(sums, query, keys, kWholeLines);
    }
}

/// scores[r * kScoreStride + k] = query row r · key at+k, for kRows rows and kKeys keys.
KVJIT_INLINE void score_keys(float* scores, const Factor* query, const ChunkRows& rows, ScoredKeys scored) {
    KeyTile keys;
    ProductLine sums[kKeys];
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

}  // namespace kvjit
