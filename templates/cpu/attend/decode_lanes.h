// Scores of decode by floats over a quantised cache whose rows fill the lanes of one vector: each lane has neighbouring
// elements that share a scale, which multiplies their sum, once, in place of each of them. Vector i of a row has
// element i of every lane, so that codes become floats by shuffles of whole registers.
#pragma once

#include "cpu/attend/decode_factors.h"

namespace kvjit {

/// One or two words of a lane. Longer rows would need more sums than there are registers.
inline constexpr int kLaneElements = kHeadDim == 8 * kLanes ? 8 : 4;
inline constexpr bool kLaneScores =
    kHasAvx2 && kQuantised && kHeadDim == kLaneElements * kLanes && kQuantGroup % kLaneElements == 0;

/// N: lanes of a vector, kLanes. A template, so that it is compiled only where it serves. Values are FactorProducts'.
template <int N>
struct LaneProducts : FactorProducts<N> {
    /// A word is 32 bits of a lane: 4 elements of int8, or all of int4.
    static constexpr int kWordElements = kQuantBit == 8 ? 4 : kLaneElements;
    static constexpr int kWords = kLaneElements / kWordElements;
    /// The queries' vectors, each for all rows in turn, divided by kCodeUnit.
    using Query = float[kLaneElements][kRows * N];

    // ---- Codes -----------------------------------------------------------------------------------------------------

    /// What multiplies codes as floats: a byte becomes the upper one of an integer, which keeps its sign. As a power of
    /// two it changes no bit of a product with a query that is smaller by it.
    static constexpr float kCodeUnit = kQuantBit == 8 ? 0x1p24f : 1;

    template <int kFirst, int... I>
    KVJIT_INLINE static vi<N> every_other(vi<N> a, vi<N> b, Sequence<int, I...>) {
        return __builtin_shufflevector(a, b, (2 * I + kFirst)...);
    }

    /// Word kWord of each lane of a row.
    template <int kWord>
    KVJIT_INLINE static vi<N> load_words(const T2* codes) {
        if constexpr (kWords == 2)
            return every_other<kWord>(load_raw<i32, N>(codes), load_raw<i32, N>(advance(codes, 4 * N)), Lanes<N>{});
        else if constexpr (kWordElements * kQuantBit == 32)
            return load_raw<i32, N>(codes);
        else
            return __builtin_convertvector(load_raw<u16, N>(codes), vi<N>);
    }

    template <int kByte, int... I>
    KVJIT_INLINE static vi<N> to_upper_byte(vi<N> words, Sequence<int, I...>) {
        const auto bytes = __builtin_bit_cast(vec<u8, 4 * N>, words);
        return __builtin_bit_cast(
            vi<N>, __builtin_shufflevector(bytes, vec<u8, 4 * N>(0), (I % 4 == 3 ? I - 3 + kByte : 4 * N)...));
    }

    /// Code kElement of each word, times kCodeUnit.
    template <int kElement>
    KVJIT_INLINE static vf<N> codes_of(vi<N> words) {
        if constexpr (kQuantBit == 8) {
            return __builtin_convertvector(to_upper_byte<kElement>(words, Lanes<4 * N>{}), vf<N>);
        } else if constexpr (N == 16) {
            const vf<16> codes = {0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1};
            return lookup16(codes, words >> 4 * kElement);
        } else {
            return __builtin_convertvector(words << (28 - 4 * kElement) >> 28, vf<N>);
        }
    }

    /// The scale of each lane. An infinite one becomes NaN: products with codes would be of either kind, sums of them
    /// NaN.
    KVJIT_INLINE static vf<N> load_scales(const T3* scales) {
        vf<N> each;
        if constexpr (kScalesPerRow == 1)
            each = load_splat<N>(scales);
        else
            each = repeat_each<float, N, kScalesPerRow>(load<kScalesPerRow>(scales));
        return fma<N>(each, vf<N>(0.0f), each);
    }

    // ---- Scores ----------------------------------------------------------------------------------------------------

    KVJIT_INLINE static void load_query(Query& tile, i64 r, const T1* from) {
#pragma clang loop unroll(disable)
        for (int d = 0; d < kHeadDim; d += 8) {
            const vf<8> numbers = load<8>(from + d) * (1 / kCodeUnit);
#pragma clang loop unroll(full)
            for (int i = 0; i < 8; ++i) tile[i % kLaneElements][r * N + (d + i) / kLaneElements] = numbers[i];
        }
    }

    /// sums[k] += products of elements kElement.. of a word.
    template <int kElement = 0>
    KVJIT_INLINE static void add_elements(ProductLine (&sums)[kKeys], const vi<N> (&words)[kKeys],
                                          const float (*query)[kRows * N]) {
        const ProductLine factors = load<kRows * N>(query[kElement]);
#pragma clang loop unroll(full)
        for (int k = 0; k < kKeys; ++k)
            sums[k] = fma<kRows * N>(repeat_for_rows<float>(codes_of<kElement>(words[k])), factors, sums[k]);
        if constexpr (kElement + 1 < kWordElements) add_elements<kElement + 1>(sums, words, query);
    }

    /// The same for word kWord.., while later keys are prefetched.
    template <int kWord = 0>
    KVJIT_INLINE static void add_words(ProductLine (&sums)[kKeys], const float (*query)[kRows * N],
                                       const ChunkRows& rows, ScoredKeys scored) {
        if (scored.first_of_head) prefetch_share<kWords>(rows, scored.at, scored.head, kWord);
        vi<N> words[kKeys];
#pragma clang loop unroll(full)
        for (int k = 0; k < kKeys; ++k) words[k] = load_words<kWord>(rows.codes(scored.at + k, scored.head));
        add_elements(sums, words, query + kWord * kWordElements);
        if constexpr (kWord + 1 < kWords) add_words<kWord + 1>(sums, query, rows, scored);
    }

    KVJIT_INLINE static void prefetch_scales(const ChunkRows& rows, ScoredKeys scored) {
#pragma clang loop unroll(full)
        for (int k = 0; k < kKeys; ++k) prefetch_far(rows.scales(scored.at + kAhead + k, scored.head));
    }

    /// sums[k] = products of the tile's queries and key k. Whether later keys are prefetched is asked in between: two
    /// copies of so long a text would take longer to compile.
    KVJIT_INLINE static void multiply_keys(ProductLine (&sums)[kKeys], const Query& query, const ChunkRows& rows,
                                           ScoredKeys scored) {
        if (scored.first_of_head) prefetch_scales(rows, scored);
        add_words(sums, query, rows, scored);
#pragma clang loop unroll(full)
        for (int k = 0; k < kKeys; ++k)
            sums[k] *= repeat_for_rows<float>(load_scales(rows.scales(scored.at + k, scored.head)));
    }

    KVJIT_INLINE static void score_keys(float* scores, const Query& query, const ChunkRows& rows, ScoredKeys scored,
                                        FactorProducts<N>::Scratch&) {
        ProductLine sums[kKeys] = {};
        multiply_keys(sums, query, rows, scored);
        store_scores<kRows * N>(scores, sums);
    }
};

}  // namespace kvjit
