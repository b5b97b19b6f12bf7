// Products of decode whose factors are floats, or bfloat16 numbers as they lie in the cache. The arithmetic of one row
// doesn't depend on the others of its tile.
#pragma once

#include "cpu/attend/decode_scores.h"
#include "cpu/attend/lanes.h"
#include "cpu/machine/pairs.h"

namespace kvjit {

using Factor = FactorOf<kPairs>::Type;
inline constexpr int kFactorElements = kPairs ? 2 : 1;

/// Floats as factors, where those are floats.
template <int N>
KVJIT_INLINE vec<Factor, N> as_factors(vf<N> v) {
    return __builtin_bit_cast(vec<Factor, N>, v);
}

/// kLanes factors of each row of a tile in turn.
using QueryVector = vec<Factor, kRows * kLanes>;
/// A line: the vectors of kLineElements elements. A tile's queries are kLines lines.
inline constexpr int kLineVectors = kOrderLanes / kLanes;
inline constexpr int kLineElements = kOrderLanes * kFactorElements;
inline constexpr int kLineFactors = kLineVectors * kRows * kLanes;
inline constexpr int kLines = (kHeadDim + kLineElements - 1) / kLineElements;
inline constexpr int kWholeLines = kHeadDim / kLineElements;
inline constexpr int kTailElements = kHeadDim % kLineElements;

// ---- Scores --------------------------------------------------------------------------------------------------------

/// Stores a row's factors of kCount elements, followed by zeros, into its lanes of a line.
template <int kCount>
KVJIT_INLINE void store_query_line(Factor* line, const T1* from) {
    if constexpr (kPairs) {
        store_raw<Factor, kLanes>(line, load_pairs<kLanes, kCount>(from));
    } else {
        constexpr bool kStaysInOrder = kHalvesOrder && kCount == 8;
        const vf<kOrderLanes> elements = load_first<kOrderLanes, kCount>(from);
        alignas(64) float vectors[kLineVectors][kLanes];
        store<kOrderLanes>(vectors[0], kStaysInOrder ? elements : to_lanes<kOrderLanes>(elements));
#pragma clang loop unroll(full)
        for (int v = 0; v < kLineVectors; ++v)
            store_raw<Factor, kLanes>(line + v * kRows * kLanes, load_raw<Factor, kLanes>(vectors[v]));
    }
}

/// A tile's keys: their rows and, if quantised, their scales as float32.
struct KeyTile {
    const T2* codes[kKeys];
    alignas(64) float scales[kKeys][kScalesPerRow];
};

/// Vector kVector of a line of kCount elements from element d of key k on, followed by zeros.
template <int kCount, int kVector>
KVJIT_INLINE vec<Factor, kLanes> load_key(const KeyTile& keys, int k, int d) {
    const T2* codes = keys.codes[k];
    if constexpr (kPairs)
        return load_pairs<kLanes, kCount>(advance(codes, d));
    else if constexpr (kEvenOddOrder)
        return as_factors(every_other_of<kVector, kLanes>(load_pairs<kLanes, kCount>(advance(codes, d))));
    else if constexpr (kCount < kLanes)
        return as_factors(pad(load_lanes<kCount>(codes, keys.scales[k], d)));
    else
        return as_factors(load_lanes<kLanes>(codes, keys.scales[k], d));
}

template <int kCount, int kVector = 0>
KVJIT_INLINE void add_key(ProductLine& sum, const QueryVector (&query)[kLineVectors], const KeyTile& keys, int k,
                          int d) {
    const vec<Factor, kLanes> key = load_key<kCount, kVector>(keys, k, d);
    sum = multiply_add<kRows * kLanes>(repeat_for_rows<Factor>(key), query[kVector], sum);
    if constexpr (kVector + 1 < kLineVectors) add_key<kCount, kVector + 1>(sum, query, keys, k, d);
}

/// sums[k] += products of a line's first kCount elements.
template <int kCount>
KVJIT_INLINE void add_products(ProductLine (&sums)[kKeys], const Factor* query, const KeyTile& keys, int line) {
    QueryVector factors[kLineVectors];
#pragma clang loop unroll(full)
    for (int v = 0; v < kLineVectors; ++v)
        factors[v] = load_raw<Factor, kRows * kLanes>(query + line * kLineFactors + v * kRows * kLanes);
#pragma clang loop unroll(full)
    for (int k = 0; k < kKeys; ++k) add_key<kCount>(sums[k], factors, keys, k, line * kLineElements);
}

/// Lines of a turn of the loop over them: few, yet enough that each turn prefetches as much as the others, which takes
/// no branch; 1 where that takes many.
constexpr int turn_lines() {
    constexpr int kPrefetches = kKeys * kRowLines;
    for (int lines = 1; lines <= 4; lines *= 2)
        if (kWholeLines % lines == 0 && kPrefetches % (kLines / lines) == 0) return lines;
    return 1;
}
inline constexpr int kTurnLines = kWholeLines == kLines ? turn_lines() : 1;

/// sums[k] = products of the tile's queries and key k. Prefetches are spread over the arithmetic, since a burst of
/// them would delay loads. Whether there are any is asked in between: two copies of so long a text would take
/// longer to compile.
KVJIT_INLINE void multiply_keys(ProductLine (&sums)[kKeys], const Factor* query, const KeyTile& keys,
                                const ChunkRows& rows, ScoredKeys scored) {
#pragma clang loop unroll(full)
    for (int k = 0; k < kKeys; ++k) {
        if (kQuantised && scored.first_of_head) prefetch_far(rows.scales(scored.at + kAhead + k, scored.head));
        sums[k] = ProductLine(0.0f);
    }
#pragma clang loop unroll(disable)
    for (int line = 0; line < kWholeLines; line += kTurnLines) {
        if (scored.first_of_head) prefetch_share<kLines / kTurnLines>(rows, scored.at, scored.head, line / kTurnLines);
#pragma clang loop unroll(full)
        for (int i = 0; i < kTurnLines; ++i) add_products<kLineElements>(sums, query, keys, line + i);
    }
    if constexpr (kWholeLines < kLines) {
        if (scored.first_of_head) prefetch_share<kLines>(rows, scored.at, scored.head, kWholeLines);
        add_products<kTailElements>(sums, query, keys, kWholeLines);
    }
}

// ---- Sums of values ------------------------------------------------------------------------------------------------

/// The probability of a row's key t, or of the pair that t begins.
KVJIT_INLINE Factor factor_at(const float* probabilities, i64 t) {
    using Aliased [[gnu::may_alias]] = Factor;
    return reinterpret_cast<const Aliased*>(probabilities)[t / kFactorElements];
}

inline constexpr u32 kHiddenFactor = kPairs ? 0x80008000 : kHiddenBits;

/// 0 where the mask hides key t, or both keys of the pair that t begins, from every row of the tile: their values must
/// not be read. Of a pair, each half is 0 where the mask hides that key.
KVJIT_INLINE u32 seen_bits(const float* probabilities, i64 t) {
    u32 seen = 0;
#pragma clang loop unroll(full)
    for (int r = 0; r < kRows; ++r)
        seen |= __builtin_bit_cast(u32, factor_at(probabilities + r * kScoreStride, t)) ^ kHiddenFactor;
    return seen;
}

/// Elements d..d+N-1 of value t, or of values t and t+1 as pairs.
template <int N>
KVJIT_INLINE vec<Factor, N> load_values(const ChunkRows& rows, const ValueRange& range, u32 seen, i64 t, int d) {
    if constexpr (kPairs) {
        const RowAt even = value_row(rows, range, t, kMaskRank == 0 || seen & 0xffff);
        const RowAt odd = value_row(rows, range, t + 1, kMaskRank == 0 || seen >> 16);
        return pair_up<N>(load_raw<u16, N>(advance(even.codes, d)), load_raw<u16, N>(advance(odd.codes, d)));
    } else {
        return as_factors(load_lanes<N>(rows.codes(t, range.head), rows.scales(t, range.head), d));
    }
}

/// sums[r][d..d+N-1] += probabilities[r][t] * value t [d..d+N-1], for kRows rows and the range's keys. kPrefetch: later
/// values are prefetched meanwhile.
template <int N, bool kPrefetch>
KVJIT_INLINE void add_span(float* sums, const float* probabilities, const ChunkRows& rows, ValueRange range, int d) {
    vf<N> sum[kRows];
#pragma clang loop unroll(full)
    for (int r = 0; r < kRows; ++r) sum[r] = range.first ? vf<N>(0.0f) : load<N>(sums + r * kPadDim + d);
#pragma clang loop unroll(disable)
    for (i64 t = range.begin / kFactorElements * kFactorElements; t < range.end; t += kFactorElements) {
#pragma clang loop unroll(full)
        for (int i = 0; kPrefetch && i < kFactorElements; ++i) prefetch_span<N>(rows, t + i, range.head, d);
        const u32 seen = kMaskRank > 0 ? seen_bits(probabilities, t) : 1;
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

/// add_span for all elements: in spans of N, then of half as many, down to 8. A cache line is prefetched with the span
/// that begins it, not once more with others in it.
template <int N, int kFrom = 0>
KVJIT_INLINE void add_spans(float* sums, const float* probabilities, const ChunkRows& rows, ValueRange range) {
    constexpr int kTo = kHeadDim - (kHeadDim - kFrom) % N;
#pragma clang loop unroll(disable)
    for (int d = kFrom; d < kTo; d += N) {
        if constexpr (bytes_of<T2>(N) >= 64)
            add_span<N, true>(sums, probabilities, rows, range, d);
        else if (bytes_of<T2>(d) % 64 == 0)
            add_span<N, true>(sums, probabilities, rows, range, d);
        else
            add_span<N, false>(sums, probabilities, rows, range, d);
    }
    if constexpr (kTo < kHeadDim) add_spans<N / 2, kTo>(sums, probabilities, rows, range);
}

/// Puts sums from element kFrom on into the elements' order: blocks of N, then of half as many, down to 8.
template <int N, int kFrom = 0>
KVJIT_INLINE void order_elements(float* sums) {
    constexpr int kTo = kHeadDim - (kHeadDim - kFrom) % N;
#pragma clang loop unroll(disable)
    for (int d = kFrom; d < kTo; d += N) store<N>(sums + d, from_lanes<N>(load<N>(sums + d)));
    if constexpr (kTo < kHeadDim) order_elements<N / 2, kTo>(sums);
}

// ---- What decode asks for ------------------------------------------------------------------------------------------

/// N: lanes of a vector, kLanes. A template, so that a variant which takes only some of this compiles no more.
template <int N>
struct FactorProducts {
    using Factor = kvjit::Factor;
    /// Lines of kRows rows in turn.
    using Query = Factor[kLines * kLineFactors];
    /// Keys whose scores are made together.
    static constexpr int kKeys = kvjit::kKeys;
    static constexpr int kScoredRows = kRows, kSummedRows = kRows;
    /// Keys whose values are one step.
    static constexpr int kKeysTogether = kFactorElements;
    static constexpr int kValueBlock = kvjit::kValueBlock;
    /// Keys whose probabilities are stored together.
    static constexpr int kSoftmaxLanes = N;
    /// Of pairs of bfloat16, too: what a shorter power saves there was not measured.
    static constexpr int kPowerDegree = power_degree(false);
    struct Scratch {};

    /// Writes a query as row r of its tile's lines.
    KVJIT_INLINE static void load_query(Factor* tile, i64 r, const T1* from) {
        Factor* to = tile + r * kLanes;
#pragma clang loop unroll(disable)
        for (int line = 0; line < kWholeLines; ++line)
            store_query_line<kLineElements>(to + line * kLineFactors, from + line * kLineElements);
        if constexpr (kWholeLines < kLines)
            store_query_line<kTailElements>(to + kWholeLines * kLineFactors, from + kWholeLines * kLineElements);
    }

    /// scores[r * kScoreStride + k] = query row r · key at+k, for kRows rows and kKeys keys.
    KVJIT_INLINE static void score_keys(float* scores, const Factor* query, const ChunkRows& rows, ScoredKeys scored,
                                        Scratch&) {
        KeyTile keys;
        ProductLine sums[kKeys];
#pragma clang loop unroll(full)
        for (int k = 0; k < kKeys; ++k) {
            keys.codes[k] = rows.codes(scored.at + k, scored.head);
            if constexpr (kQuantised) widen<kScalesPerRow>(keys.scales[k], rows.scales(scored.at + k, scored.head));
        }
        multiply_keys(sums, query, keys, rows, scored);
        store_scores<kRows * kLanes>(scores, sums);
    }

    /// Stores probabilities of a row's keys from t on where their scores were, as add_values reads them.
    KVJIT_INLINE static void store_probabilities(float* scores, i64 t, vf<N> probabilities) {
        if constexpr (kPairs)
            store_raw<u16, N>(reinterpret_cast<char*>(scores) + 2 * t, round_to_bfloat16<N>(probabilities));
        else
            store<N>(scores + t, probabilities);
    }

    /// Adds the range's values to the sums of the tile's rows.
    KVJIT_INLINE static void add_values(float* sums, const float* probabilities, const ChunkRows& rows,
                                        ValueRange range, Scratch&) {
        add_spans<kSpan>(sums, probabilities, rows, range);
    }

    /// Puts sums of values back into the order of elements.
    KVJIT_INLINE static void finish_sums(float* sums, const SummedRow&) {
        if constexpr (!kOrdered) order_elements<kOrderLanes>(sums);
    }
};

}  // namespace kvjit
