// The inner loops of prefill. Query rows lie in lanes: kTileRows rows are a tile, and queries, scores and sums are
// matrices with a line of kTileRows floats for each element or key. So keys and values need no transposition, and
// softmax is lane by lane. The arithmetic of one row doesn't depend on the others of its tile.
#pragma once

#include "common/key_range.h"
#include "cpu/attend/rows.h"
#include "cpu/machine/math.h"

namespace kvjit {

/// Keys or elements that are summed together for kTileRows rows, in enough accumulators to hide the latency of FMA.
inline constexpr int kTall = kVectorBytes == 64 ? 8 : 4;
inline constexpr int kTileRows = kVectorBytes == 16 ? 8 : 2 * kLanes;
inline constexpr int kBlockKeys = kPadDim > 256 ? 32 : 64;
/// Floats from one packed row to the next. A power of two would crowd a few sets of the processor's cache.
inline constexpr int kPackStride = kPadDim + 16;
static_assert(abi::kChunk % kBlockKeys == 0 && kBlockKeys % kLanes == 0 && kBlockKeys % kTall == 0);
static_assert(kHeadDim % kTall == 0);

/// A line of a tile: one number for each of its rows.
using Line = vf<kTileRows>;

/// sums[i] += factors[i * kStep] * x, for kTall lines.
template <int kStep>
KVJIT_INLINE void add_lines(Line (&sums)[kTall], const float* factors, Line x) {
#pragma clang loop unroll(full)
    for (int i = 0; i < kTall; ++i) sums[i] = fma<kTileRows>(Line(factors[i * kStep]), x, sums[i]);
}

/// scores[k][row] = key k · query row, for the keys of a range widened to multiples of kTall. keys: rows of
/// kPackStride; query: kHeadDim lines.
KVJIT_NOINLINE void score_block(float* scores, const float* keys, const float* query, KeyRange range) {
#pragma clang loop unroll(disable)
    for (i64 k = range.begin / kTall * kTall; k < range.end; k += kTall) {
        Line sums[kTall];
#pragma clang loop unroll(full)
        for (int i = 0; i < kTall; ++i) sums[i] = Line(0.0f);
#pragma clang loop unroll_count(2)
        for (int d = 0; d < kHeadDim; ++d)
            add_lines<kPackStride>(sums, keys + k * kPackStride + d, load<kTileRows>(query + d * kTileRows));
#pragma clang loop unroll(full)
        for (int i = 0; i < kTall; ++i) store<kTileRows>(scores + (k + i) * kTileRows, sums[i]);
    }
}

/// sums[d][row] = sums[d][row] * rescale[row] + sum over k of probabilities[k][row] * value k [d]. k is in `range`, or,
/// with masks, in `order` at the places in `range`.
KVJIT_NOINLINE void add_block(float* sums, const float* probabilities, const float* values, const float* rescale,
                              const u8* order, KeyRange range) {
#pragma clang loop unroll(disable)
    for (int d = 0; d < kHeadDim; d += kTall) {
        Line sum[kTall];
#pragma clang loop unroll(full)
        for (int i = 0; i < kTall; ++i) sum[i] = load<kTileRows>(sums + (d + i) * kTileRows) * load<kTileRows>(rescale);
#pragma clang loop unroll_count(2)
        for (i64 x = range.begin; x < range.end; ++x) {
            const i64 k = kMaskRank > 0 ? order[x] : x;
            add_lines<1>(sum, values + k * kPackStride + d, load<kTileRows>(probabilities + k * kTileRows));
        }
#pragma clang loop unroll(full)
        for (int i = 0; i < kTall; ++i) store<kTileRows>(sums + (d + i) * kTileRows, sum[i]);
    }
}

// ---- Transposing: rows of memory to lanes and back ------------------------------------------------------------------

template <int kStep, int N, int... I>
KVJIT_INLINE vf<N> take_first(vf<N> a, vf<N> b, Sequence<int, I...>) {
    return __builtin_shufflevector(a, b, (I & kStep ? I - kStep + N : I)...);
}
template <int kStep, int N, int... I>
KVJIT_INLINE vf<N> take_second(vf<N> a, vf<N> b, Sequence<int, I...>) {
    return __builtin_shufflevector(a, b, (I & kStep ? I + N : I + kStep)...);
}

/// Transposes N x N numbers: exchanges the off-diagonal blocks of kStep x kStep, then those of half that size.
template <int kStep, int N>
KVJIT_INLINE void transpose(vf<N> (&v)[N]) {
#pragma clang loop unroll(full)
    for (int i = 0; i < N; ++i) {
        if (i & kStep) continue;
        const vf<N> a = v[i], b = v[i + kStep];
        v[i] = take_first<kStep, N>(a, b, Lanes<N>{});
        v[i + kStep] = take_second<kStep, N>(a, b, Lanes<N>{});
    }
    if constexpr (kStep > 1) transpose<kStep / 2, N>(v);
}

/// to[c * to_stride + r] = from[r * from_stride + c] for kLanes x kLanes floats.
KVJIT_NOINLINE void transpose_square(float* to, i64 to_stride, const float* from, i64 from_stride) {
    vf<kLanes> v[kLanes];
#pragma clang loop unroll(full)
    for (int i = 0; i < kLanes; ++i) v[i] = load<kLanes>(from + i * from_stride);
    transpose<kLanes / 2, kLanes>(v);
#pragma clang loop unroll(full)
    for (int i = 0; i < kLanes; ++i) store<kLanes>(to + i * to_stride, v[i]);
}

/// kLanes rows of kPadDim floats to kLanes lanes of kPadDim lines, and back.
KVJIT_INLINE void rows_to_lines(float* lines, const float* rows) {
#pragma clang loop unroll(disable)
    for (int d = 0; d < kPadDim; d += kLanes) transpose_square(lines + d * kTileRows, kTileRows, rows + d, kPadDim);
}
KVJIT_INLINE void lines_to_rows(float* rows, const float* lines) {
#pragma clang loop unroll(disable)
    for (int d = 0; d < kPadDim; d += kLanes) transpose_square(rows + d, kPadDim, lines + d * kTileRows, kTileRows);
}

}  // namespace kvjit
