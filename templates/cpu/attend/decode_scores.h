// From products, kLanes sums for each of a tile's rows, to scores.
#pragma once

#include "cpu/attend/decode_tile.h"
#include "cpu/machine/simd.h"

namespace kvjit {

using ProductLine = vf<kRows * kLanes>;

/// v, repeated for each of the tile's rows.
template <class E, int... I>
KVJIT_INLINE vec<E, kRows * kLanes> repeat_for_rows(vec<E, kLanes> v, Sequence<int, I...>) {
    return __builtin_shufflevector(v, v, (I % kLanes)...);
}
template <class E>
KVJIT_INLINE vec<E, kRows * kLanes> repeat_for_rows(vec<E, kLanes> v) {
    return repeat_for_rows<E>(v, Lanes<kRows * kLanes>{});
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

}  // namespace kvjit
