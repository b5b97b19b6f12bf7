// Products of decode for bfloat16 queries over an int4 cache, as pairs of bfloat16, which holds every code exactly. A
// key's scales multiply sums of products, a value's scales multiply the probability. Each lane has kLaneElements
// neighbouring elements, which share a scale. A strip is the part of a row that the lanes of a vector have.
#pragma once

#include "cpu/attend/decode_scores.h"
#include "cpu/machine/nibbles.h"
#include "cpu/machine/pairs.h"

namespace kvjit {

inline constexpr bool kNibblePairs =
    kFastBfloat16 && kSame<T1, bf16_t> && kQuantBit == 4 && kHeadDim % 64 == 0 && kQuantGroup % 8 == 0;

/// N: lanes of a vector, kLanes. A template, so that it is compiled only where it serves.
template <int N>
struct NibbleProducts {
    using Factor = u32;
    static constexpr int kLaneElements = kHeadDim % 128 == 0 ? 8 : 4;
    static constexpr int kStripElements = N * kLaneElements;
    static constexpr int kStrips = kHeadDim / kStripElements;
    static constexpr int kStripLines = kLaneElements / 2;
    using Query = Factor[kStrips * kStripLines * kRows * N];
    static constexpr int kKeys = kvjit::kKeys;
    static constexpr int kScoredRows = kRows, kSummedRows = kRows;
    static constexpr int kKeysTogether = 2;
    static constexpr int kValueBlock = kvjit::kValueBlock;
    static constexpr int kSoftmaxLanes = N;
    static constexpr int kPowerDegree = power_degree(false);
    static constexpr int kValueVectors = kSpan / N;  // of values that are summed together

    /// A block's pairs of keys that some row of the tile sees: their values, and their probabilities times the values'
    /// scales.
    struct Scratch {
        i64 count;
        ValuePair pair[kValueBlock / 2];
        i64 key[kValueBlock / 2];  // the even one
        alignas(64) u32 weights[kValueBlock / 2][kStrips][kRows][N];
    };

    // ---- Scores ----------------------------------------------------------------------------------------------------

    /// Of the lane's elements, line i has the pair of i and i + kLaneElements/2.
    template <int kLine, int... I>
    KVJIT_INLINE static vec<u16, 2 * N> line_of(vec<u16, kStripElements> strip, Sequence<int, I...>) {
        return __builtin_shufflevector(strip, strip, (I / 2 * kLaneElements + kLine + I % 2 * (kLaneElements / 2))...);
    }

    template <int kLine = 0>
    KVJIT_INLINE static void load_lines(Factor* to, const T1* from) {
        if constexpr (kLine < kStripLines) {
            const auto strip = load_raw<u16, kStripElements>(from);
            store_vector(to + kLine * kRows * N, line_of<kLine>(strip, Lanes<2 * N>{}));
            load_lines<kLine + 1>(to, from);
        }
    }

    KVJIT_INLINE static void load_query(Factor* tile, i64 r, const T1* from) {
#pragma clang loop unroll(disable)
        for (int strip = 0; strip < kStrips; ++strip)
            load_lines(tile + (strip * kStripLines * kRows + r) * N, from + strip * kStripElements);
    }

    /// The codes of each lane, from its lowest bits on.
    KVJIT_INLINE static vec<u32, N> load_nibbles(const T2* row, int strip) {
        const T2* from = advance(row, strip * kStripElements);
        if constexpr (kLaneElements == 8)
            return load_raw<u32, N>(from);
        else
            return __builtin_convertvector(load_raw<u16, N>(from), vec<u32, N>);
    }

    /// The scale of each lane's elements.
    KVJIT_INLINE static vf<N> load_scales(const T3* scales, int strip) {
        if constexpr (kQuantGroup >= kStripElements)
            return load_splat<N>(scales + strip * kStripElements / kQuantGroup);
        else {
            constexpr int kScales = kStripElements / kQuantGroup;
            return repeat_each<float, N, kScales>(load<kScales>(scales + strip * kScales));
        }
    }

    /// sums[k] += products of the strip's elements of the tile's queries and key k.
    KVJIT_INLINE static void score_strip(ProductLine& sum, const Factor* query, const T2* codes, const T3* scales,
                                         int strip) {
        vec<u32, N> nibbles = load_nibbles(codes, strip);
        if constexpr (kLaneElements == 4) nibbles |= nibbles << 8;  // the later two to the upper half
        ProductLine products(0.0f);
#pragma clang loop unroll(full)
        for (int line = 0; line < kStripLines; ++line) {
            const auto key = repeat_for_rows<u32>(nibbles_to_bfloat16(nibbles >> 4 * line));
            const Factor* from = query + (strip * kStripLines + line) * kRows * N;
            products = multiply_add<kRows * N>(key, load_raw<u32, kRows * N>(from), products);
        }
        sum = fma<kRows * N>(products, repeat_for_rows<float>(load_scales(scales, strip)), sum);
    }

    template <bool kPrefetch>
    KVJIT_INLINE static void multiply_keys(ProductLine (&sums)[kKeys], const Factor* query, const ChunkRows& rows,
                                           ScoredKeys scored) {
#pragma clang loop unroll(full)
        for (int k = 0; k < kKeys; ++k) {
            const i64 at = scored.at + k;
            if constexpr (kPrefetch) {
                prefetch_far(rows.scales(at + kAhead, scored.head));
                prefetch_share<kKeys>(rows, scored.at, scored.head, k);
            }
            sums[k] = ProductLine(0.0f);
#pragma clang loop unroll(disable)
            for (int strip = 0; strip < kStrips; ++strip)
                score_strip(sums[k], query, rows.codes(at, scored.head), rows.scales(at, scored.head), strip);
        }
    }

    KVJIT_INLINE static void score_keys(float* scores, const Factor* query, const ChunkRows& rows, ScoredKeys scored,
                                        Scratch&) {
        ProductLine sums[kKeys];
        if (scored.first_of_head)
            multiply_keys<true>(sums, query, rows, scored);
        else
            multiply_keys<false>(sums, query, rows, scored);
        store_scores<kRows * N>(scores, sums);
    }

    // ---- Sums of values --------------------------------------------------------------------------------------------

    KVJIT_INLINE static void store_probabilities(float* scores, i64 t, vf<N> probabilities) {
        store<N>(scores + t, probabilities);
    }

    /// The weights of the block's last pair, of key t and the next one, for all rows and strips.
    KVJIT_INLINE static void weigh_pair(Scratch& block, const float* probabilities, i64 t) {
        const ValuePair& pair = block.pair[block.count];
#pragma clang loop unroll(disable)
        for (int strip = 0; strip < kStrips; ++strip) {
            const vf<N> even = load_scales(pair.even.scales, strip), odd = load_scales(pair.odd.scales, strip);
#pragma clang loop unroll(full)
            for (int r = 0; r < kRows; ++r) {
                const float* probability = probabilities + r * kScoreStride + t;
                store_vector(block.weights[block.count][strip][r],
                             round_pairs<N>(even * probability[0], odd * probability[1]));
            }
        }
    }

    KVJIT_INLINE static void weigh_block(Scratch& block, const float* probabilities, const ChunkRows& rows,
                                         const ValueRange& range) {
        block.count = 0;
#pragma clang loop unroll(disable)
        for (i64 t = range.begin / 2 * 2; t < range.end; t += 2) {
            const bool even = seen_by_tile(probabilities, t), odd = seen_by_tile(probabilities, t + 1);
            if (!even && !odd) continue;
            block.key[block.count] = t;
            block.pair[block.count] = {value_row(rows, range, t, even), value_row(rows, range, t + 1, odd)};
            weigh_pair(block, probabilities, t);
            ++block.count;
        }
    }

    /// In each lane the codes of two keys from the lane's element `first` on: the even key's in the lower half.
    KVJIT_INLINE static vec<u32, N> pair_nibbles(vec<u32, N> even, vec<u32, N> odd, int first) {
        const u32 shift = first / 4 * 16;
        const vec<u32, N> pairs = (even >> shift & 0xffff) | (odd >> shift) << 16;
        return pairs >> first % 4 * 4;
    }

    /// sums[r][d..d+kSpan-1] += weights times values, for kRows rows and the block's pairs. Sums lie vector by
    /// vector: of a strip, each lane's first elements, then each lane's second ones, and so on.
    KVJIT_INLINE static void add_vectors(float* sums, const Scratch& block, const ChunkRows& rows,
                                         const ValueRange& range, int d) {
        vf<N> sum[kRows][kValueVectors];
        const int strip = d / kStripElements, first = d % kStripElements / N;
#pragma clang loop unroll(full)
        for (int i = 0; i < kRows * kValueVectors; ++i)
            sum[i / kValueVectors][i % kValueVectors] =
                range.first ? vf<N>(0.0f) : load<N>(sums + i / kValueVectors * kPadDim + d + i % kValueVectors * N);
#pragma clang loop unroll(disable)
        for (i64 x = 0; x < block.count; ++x) {
            const ValuePair& pair = block.pair[x];
            prefetch_span<kSpan>(rows, block.key[x], range.head, d);
            prefetch_span<kSpan>(rows, block.key[x] + 1, range.head, d);
            const vec<u32, N> nibbles =
                pair_nibbles(load_nibbles(pair.even.codes, strip), load_nibbles(pair.odd.codes, strip), first);
#pragma clang loop unroll(full)
            for (int i = 0; i < kRows * kValueVectors; ++i) {
                const int r = i / kValueVectors, v = i % kValueVectors;
                const auto weight = load_raw<u32, N>(block.weights[x][strip][r]);
                sum[r][v] = multiply_add<N>(weight, nibbles_to_bfloat16(nibbles >> 4 * v), sum[r][v]);
            }
        }
#pragma clang loop unroll(full)
        for (int i = 0; i < kRows * kValueVectors; ++i)
            store<N>(sums + i / kValueVectors * kPadDim + d + i % kValueVectors * N,
                     sum[i / kValueVectors][i % kValueVectors]);
    }

    KVJIT_INLINE static void add_values(float* sums, const float* probabilities, const ChunkRows& rows,
                                        ValueRange range, Scratch& block) {
        weigh_block(block, probabilities, rows, range);
#pragma clang loop unroll(disable)
        for (int d = 0; d < kHeadDim; d += kSpan) add_vectors(sums, block, rows, range, d);
    }

    /// Vectors first, first + step, ... of a strip, one element of each lane in turn.
    template <int kCount>
    KVJIT_INLINE static vf<N * kCount> zip(const float* strip, int first, int step) {
        if constexpr (kCount == 1)
            return load<N>(strip + first * N);
        else
            return interleave<float, N / 2 * kCount>(zip<kCount / 2>(strip, first, 2 * step),
                                                     zip<kCount / 2>(strip, first + step, 2 * step));
    }

    KVJIT_INLINE static void finish_sums(float* sums, const SummedRow&) {
#pragma clang loop unroll(disable)
        for (int d = 0; d < kHeadDim; d += kStripElements)
            store<kStripElements>(sums + d, zip<kLaneElements>(sums + d, 0, 1));
    }
};

}  // namespace kvjit
