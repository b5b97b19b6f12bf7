// Products of decode for bfloat16 queries over an int4 cache, as pairs of bfloat16, which holds every code exactly.
// Scales stay apart: keys' multiply sums of products, values' the probabilities. Each lane has kLaneElements
// neighbouring elements, which share a scale; kLanes lanes are a span of the row.
#pragma once

#include "cpu/attend/decode_scores.h"
#include "cpu/machine/nibbles.h"
#include "cpu/machine/pairs.h"

namespace kvjit {

inline constexpr bool kNibblePairs =
    kFastBfloat16 && kSame<T1, bf16_t> && kQuantBit == 4 && kHeadDim % 64 == 0 && kQuantGroup % 8 == 0;

/// A template, so that it is compiled only where it serves.
template <int kLanes>
struct NibbleProducts {
    using Factor = u32;
    static constexpr int kLaneElements = kHeadDim % 128 == 0 ? 8 : 4;
    static constexpr int kSpanElements = kLanes * kLaneElements;
    static constexpr int kSpans = kHeadDim / kSpanElements;
    static constexpr int kSpanLines = kLaneElements / 2;
    static constexpr int kQueryFactors = kSpans * kSpanLines * kLanes;
    static constexpr int kKeysTogether = 2;
    static constexpr int kVectors = kSpan / kLanes;  // of values that are summed together

    /// A block's pairs of keys that some row of the tile sees: their rows, and their probabilities times their scales.
    struct Scratch {
        i64 count;
        PairOfRows pair[kValueBlock / 2];
        alignas(64) u32 weights[kValueBlock / 2][kSpans][kRows][kLanes];
    };

    // ---- Scores ----------------------------------------------------------------------------------------------------

    /// Line i of a span has in lane l the pair of elements i and i + kLaneElements/2 of the lane's.
    template <int kLine, int... I>
    KVJIT_INLINE static vec<u16, 2 * kLanes> line_of(vec<u16, kSpanElements> span, Sequence<int, I...>) {
        return __builtin_shufflevector(span, span, (I / 2 * kLaneElements + kLine + I % 2 * (kLaneElements / 2))...);
    }

    template <int kLine = 0>
    KVJIT_INLINE static void load_lines(Factor* to, const T1* from) {
        if constexpr (kLine < kSpanLines) {
            const auto span = load_raw<u16, kSpanElements>(from);
            store_vector(to + kLine * kRows * kLanes, line_of<kLine>(span, Lanes<2 * kLanes>{}));
            load_lines<kLine + 1>(to, from);
        }
    }

    KVJIT_INLINE static void load_query(Factor* tile, i64 r, const T1* from) {
#pragma clang loop unroll(disable)
        for (int span = 0; span < kSpans; ++span)
            load_lines(tile + (span * kSpanLines * kRows + r) * kLanes, from + span * kSpanElements);
    }

    /// The codes of each lane, from its lowest bits on.
    KVJIT_INLINE static vec<u32, kLanes> load_nibbles(const T2* row, int span) {
        const T2* from = advance(row, span * kSpanElements);
        if constexpr (kLaneElements == 8)
            return load_raw<u32, kLanes>(from);
        else
            return __builtin_convertvector(load_raw<u16, kLanes>(from), vec<u32, kLanes>);
    }

    /// The scale of each lane's elements.
    KVJIT_INLINE static vf<kLanes> load_scales(const T3* scales, int span) {
        if constexpr (kQuantGroup >= kSpanElements)
            return load_splat<kLanes>(scales + span * kSpanElements / kQuantGroup);
        else {
            constexpr int kScales = kSpanElements / kQuantGroup;
            return repeat_each<float, kLanes, kScales>(load<kScales>(scales + span * kScales));
        }
    }

    /// sums[k] += products of the span's elements of the tile's queries and key k.
    KVJIT_INLINE static void add_span(ProductLine& sum, const Factor* query, const T2* codes, const T3* scales,
                                      int span) {
        vec<u32, kLanes> nibbles = load_nibbles(codes, span);
        if constexpr (kLaneElements == 4) nibbles |= nibbles << 8;  // the later two to the upper half
        ProductLine products(0.0f);
#pragma clang loop unroll(full)
        for (int line = 0; line < kSpanLines; ++line) {
            const auto key = repeat_for_rows<u32>(nibbles_to_bfloat16(nibbles >> 4 * line));
            const Factor* from = query + (span * kSpanLines + line) * kRows * kLanes;
            products = multiply_add<kRows * kLanes>(key, load_raw<u32, kRows * kLanes>(from), products);
        }
        sum = fma<kRows * kLanes>(products, repeat_for_rows<float>(load_scales(scales, span)), sum);
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
            for (int span = 0; span < kSpans; ++span)
                add_span(sums[k], query, rows.codes(at, scored.head), rows.scales(at, scored.head), span);
        }
    }

    KVJIT_INLINE static void score_keys(float* scores, const Factor* query, const ChunkRows& rows, ScoredKeys scored) {
        ProductLine sums[kKeys];
        if (scored.prefetch)
            multiply_keys<true>(sums, query, rows, scored);
        else
            multiply_keys<false>(sums, query, rows, scored);
        store_scores<kRows * kLanes>(scores, sums);
    }

    // ---- Sums of values --------------------------------------------------------------------------------------------

    KVJIT_INLINE static void store_probabilities(float* scores, i64 t, vf<kLanes> probabilities) {
        store<kLanes>(scores + t, probabilities);
    }

    /// Whether some row of the tile sees key t, as far as masks say.
    KVJIT_INLINE static bool seen_by_tile(const float* probabilities, i64 t) {
        if constexpr (kMaskRank == 0) return true;
        i32 seen = 0;
#pragma clang loop unroll(full)
        for (int r = 0; r < kRows; ++r)
            seen |= __builtin_bit_cast(i32, probabilities[r * kScoreStride + t]) ^ kHiddenBits;
        return seen != 0;
    }

    /// The weights of a pair of keys, for all rows and spans.
    KVJIT_INLINE static void weigh_pair(Scratch& block, const float* probabilities, const ChunkRows& rows, i64 head,
                                        i64 t) {
        const PairOfRows pair = block.pair[block.count];
#pragma clang loop unroll(disable)
        for (int span = 0; span < kSpans; ++span) {
            const vf<kLanes> even = load_scales(rows.scales(pair.even, head), span);
            const vf<kLanes> odd = load_scales(rows.scales(pair.odd, head), span);
#pragma clang loop unroll(full)
            for (int r = 0; r < kRows; ++r) {
                const float* probability = probabilities + r * kScoreStride + t;
                store_vector(block.weights[block.count][span][r],
                             round_pairs<kLanes>(even * probability[0], odd * probability[1]));
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
            block.pair[block.count] = readable_pair(range, t, even, odd);
            weigh_pair(block, probabilities, rows, range.head, t);
            ++block.count;
        }
    }

    /// Of two keys, in each lane, the nibbles of elements `first` and those after it: the even key's in the lower half.
    KVJIT_INLINE static vec<u32, kLanes> pair_nibbles(vec<u32, kLanes> even, vec<u32, kLanes> odd, int first) {
        const u32 shift = first / 4 * 16;
        const vec<u32, kLanes> pairs = (even >> shift & 0xffff) | (odd >> shift) << 16;
        return pairs >> first % 4 * 4;
    }

    /// sums[r][d..d+kSpan-1] += weights times values, for kRows rows and the block's pairs; d in the order of vectors.
    KVJIT_INLINE static void add_vectors(float* sums, const Scratch& block, const ChunkRows& rows,
                                         const ValueRange& range, int d) {
        vf<kLanes> sum[kRows][kVectors];
        const int span = d / kSpanElements, first = d % kSpanElements / kLanes;
#pragma clang loop unroll(full)
        for (int i = 0; i < kRows * kVectors; ++i)
            sum[i / kVectors][i % kVectors] =
                range.first ? vf<kLanes>(0.0f)
                            : load<kLanes>(sums + i / kVectors * kPadDim + d + i % kVectors * kLanes);
#pragma clang loop unroll(disable)
        for (i64 x = 0; x < block.count; ++x) {
            const PairOfRows pair = block.pair[x];
            prefetch_span<kSpan>(rows, pair.even, range.head, d);
            prefetch_span<kSpan>(rows, pair.odd, range.head, d);
            const vec<u32, kLanes> nibbles = pair_nibbles(load_nibbles(rows.codes(pair.even, range.head), span),
                                                          load_nibbles(rows.codes(pair.odd, range.head), span), first);
#pragma clang loop unroll(full)
            for (int i = 0; i < kRows * kVectors; ++i) {
                const int r = i / kVectors, v = i % kVectors;
                const auto weight = load_raw<u32, kLanes>(block.weights[x][span][r]);
                sum[r][v] = multiply_add<kLanes>(weight, nibbles_to_bfloat16(nibbles >> 4 * v), sum[r][v]);
            }
        }
#pragma clang loop unroll(full)
        for (int i = 0; i < kRows * kVectors; ++i)
            store<kLanes>(sums + i / kVectors * kPadDim + d + i % kVectors * kLanes, sum[i / kVectors][i % kVectors]);
    }

    KVJIT_INLINE static void add_values(float* sums, const float* probabilities, const ChunkRows& rows,
                                        ValueRange range, Scratch& block) {
        weigh_block(block, probabilities, rows, range);
#pragma clang loop unroll(disable)
        for (int d = 0; d < kHeadDim; d += kSpan) add_vectors(sums, block, rows, range, d);
    }

    /// Vectors first, first + step, ... of a span, one element of each lane in turn.
    template <int kCount>
    KVJIT_INLINE static vf<kLanes * kCount> zip(const float* span, int first, int step) {
        if constexpr (kCount == 1)
            return load<kLanes>(span + first * kLanes);
        else
            return interleave<float, kLanes / 2 * kCount>(zip<kCount / 2>(span, first, 2 * step),
                                                          zip<kCount / 2>(span, first + step, 2 * step));
    }

    KVJIT_INLINE static void order_row(float* row) {
#pragma clang loop unroll(disable)
        for (int d = 0; d < kHeadDim; d += kSpanElements)
            store<kSpanElements>(row + d, zip<kLaneElements>(row + d, 0, 1));
    }
};

}  // namespace kvjit
