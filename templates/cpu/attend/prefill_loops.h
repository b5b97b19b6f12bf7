// The inner loops of prefill by vectors: a line of a tile times a key's element, or a value's. As query rows lie in
// lanes (panel.h), keys and values need no transposition.
#pragma once

#include "cpu/attend/packing.h"
#include "cpu/machine/math.h"

namespace kvjit {

/// sums[i] += factors[i * kStep] * x, for kTall lines of N lanes.
template <int kStep, int N>
KVJIT_INLINE void add_lines(vf<N> (&sums)[kTall], const Packed* factors, vec<Packed, N> x) {
#pragma clang loop unroll(full)
    for (int i = 0; i < kTall; ++i) sums[i] = multiply_add<N>(vec<Packed, N>(factors[i * kStep]), x, sums[i]);
}

/// score_block fetches rows between parts of its products: many at a time would delay its loads.
inline constexpr int kFetchParts = 4;
static_assert(kPackedFactors % kFetchParts == 0 && kTall % kFetchParts == 0);

/// scores[k][row] = key k · query row, for N rows and the keys of a range widened to multiples of kTall. keys: rows of
/// kKeyStride; query: kPackedFactors lines. ahead: keys to fetch meanwhile.
template <int N>
KVJIT_NOINLINE void score_block(float* scores, const Packed* keys, const Packed* query, KeyRange range,
                                const RowsAhead& ahead) {
#pragma clang loop unroll(disable)
    for (i64 k = range.begin / kTall * kTall; k < range.end; k += kTall) {
        vf<N> sums[kTall];
#pragma clang loop unroll(full)
        for (int i = 0; i < kTall; ++i) sums[i] = vf<N>(0.0f);
#pragma clang loop unroll(disable)
        for (int part = 0; part < kFetchParts; ++part) {
            constexpr int kRowsFetched = kTall / kFetchParts, kFactors = kPackedFactors / kFetchParts;
            ahead.fetch_rows(k + part * kRowsFetched, kRowsFetched);
#pragma clang loop unroll_count(2)
            for (int f = part * kFactors; f < (part + 1) * kFactors; ++f) {
#pragma clang loop unroll(full)
                for (int term = 0; term < kKeyTerms; ++term)
                    add_lines<kKeyStride, N>(sums, keys + k * kKeyStride + term * kPadFactors + f,
                                             load_raw<Packed, N>(query + f * kTileRows));
            }
        }
#pragma clang loop unroll(full)
        for (int i = 0; i < kTall; ++i) store<N>(scores + (k + i) * kTileRows, sums[i]);
    }
}

/// A step of add_block: a line of probabilities and a row of values, of one key or of a pair. Bits that `keep` lacks
/// are of a key that no row of the tile sees, whose value counts as 0.
struct Step {
    i64 at;
    u32 keep;
};
inline constexpr u32 kKeepEven = 0xffff, kKeepOdd = 0xffff0000;

/// The keys of a block that some row of a tile sees: `range` of keys, or, with masks, of steps.
struct SeenKeys {
    KeyRange range;
    const Step* steps;
};

/// sum[i] += probabilities * values[i], elements i of a step's values, kTall from `values` on.
template <int N>
KVJIT_INLINE void add_values(vf<N> (&sum)[kTall], const float* probabilities, const Packed* values, i64 at) {
    add_lines<1, N>(sum, values + at * kValueStride, load_raw<Packed, N>(probabilities + at * kTileRows));
}
template <int N>
KVJIT_INLINE void add_kept_values(vf<N> (&sum)[kTall], const float* probabilities, const Packed* values, Step step) {
    if constexpr (!kPacksPairs) return add_values<N>(sum, probabilities, values, step.at);
    Packed kept[kTall];
#pragma clang loop unroll(full)
    for (int i = 0; i < kTall; ++i)
        kept[i] = __builtin_bit_cast(Packed, __builtin_bit_cast(u32, values[step.at * kValueStride + i]) & step.keep);
    add_lines<1, N>(sum, kept, load_raw<Packed, N>(probabilities + step.at * kTileRows));
}

/// add_values for a range of keys, whose first and last may be half of a pair.
template <int N>
KVJIT_INLINE void add_range(vf<N> (&sum)[kTall], const float* probabilities, const Packed* values, KeyRange range) {
    const bool odd_begin = kPacksPairs && kWindow && range.begin % 2 != 0, odd_end = kPacksPairs && range.end % 2 != 0;
    if (odd_begin) add_kept_values<N>(sum, probabilities, values, {range.begin / 2, kKeepOdd});
#pragma clang loop unroll_count(2)
    for (i64 at = (range.begin + odd_begin) / kPackedElements; at < range.end / kPackedElements; ++at)
        add_values<N>(sum, probabilities, values, at);
    if (odd_end) add_kept_values<N>(sum, probabilities, values, {range.end / 2, kKeepEven});
}

/// sums[d][row] = sums[d][row] * rescale[row] + sum over the seen keys k of probabilities[k][row] * value k [d], for N
/// rows. ahead: values to fetch meanwhile.
template <int N>
KVJIT_NOINLINE void add_block(float* sums, const float* probabilities, const Packed* values, const float* rescale,
                              const SeenKeys& seen, const RowsAhead& ahead) {
    constexpr int kSpans = kHeadDim / kTall, kRowsFetched = (kBlockKeys + kSpans - 1) / kSpans;
#pragma clang loop unroll(disable)
    for (int d = 0; d < kHeadDim; d += kTall) {
        vf<N> sum[kTall];
#pragma clang loop unroll(full)
        for (int i = 0; i < kTall; ++i) sum[i] = load<N>(sums + (d + i) * kTileRows) * load<N>(rescale);
        ahead.fetch_rows(d / kTall * kRowsFetched, kRowsFetched);
        if constexpr (kMaskRank > 0) {
#pragma clang loop unroll(disable)
            for (i64 x = seen.range.begin; x < seen.range.end; ++x)
                add_kept_values<N>(sum, probabilities, values + d, seen.steps[x]);
        } else {
            add_range<N>(sum, probabilities, values + d, seen.range);
        }
#pragma clang loop unroll(full)
        for (int i = 0; i < kTall; ++i) store<N>(sums + (d + i) * kTileRows, sum[i]);
    }
}

/// kLanes rows of kPadFactors factors to kLanes lanes of as many lines.
KVJIT_INLINE void rows_to_lines(Packed* lines, const Packed* rows) {
    float* to = reinterpret_cast<float*>(lines);
    const float* from = reinterpret_cast<const float*>(rows);
#pragma clang loop unroll(disable)
    for (int f = 0; f < kPadFactors; f += kLanes)
        transpose_square(to + f * kTileRows, kTileRows, from + f, kPadFactors);
}

}  // namespace kvjit
