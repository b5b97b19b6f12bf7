// The inner loops of prefill. Query rows lie in lanes: kTileRows of them are a tile, and queries, scores and sums are
// matrices with a line of kTileRows for each element or key. So keys and values are read as they lie, and softmax is
// lane by lane. The arithmetic of a row is the same whatever other rows share the tile.
#pragma once

#include "cpu/attend_rows.h"
#include "cpu/math.h"

namespace kvjit {

/// Accumulators are kWide vectors of rows times kTall keys or elements: enough to hide the latency of FMA.
inline constexpr int kWide = kVectorBytes == 64 ? 4 : kVectorBytes == 32 ? 2 : 1;
inline constexpr int kTall = 4;
inline constexpr int kTileRows = kWide * kLanes;
/// Keys packed at a time.
inline constexpr int kBlockKeys = 64;
static_assert(abi::kChunk % kBlockKeys == 0 && kBlockKeys % kLanes == 0 && kBlockKeys % kTall == 0);
static_assert(kHeadDim % kTall == 0);

/// One line of a tile: kTileRows rows.
struct Line {
    vf<kLanes> of[kWide];
};

KVJIT_INLINE Line load_line(const float* p) {
    Line line;
#pragma clang loop unroll(full)
    for (int w = 0; w < kWide; ++w) line.of[w] = load<kLanes>(p + w * kLanes);
    return line;
}

KVJIT_INLINE void store_line(float* p, const Line& line) {
#pragma clang loop unroll(full)
    for (int w = 0; w < kWide; ++w) store<kLanes>(p + w * kLanes, line.of[w]);
}

KVJIT_INLINE Line line_of(float x) {
    Line line;
#pragma clang loop unroll(full)
    for (int w = 0; w < kWide; ++w) line.of[w] = vf<kLanes>(x);
    return line;
}

/// kTall lines += kTall broadcast factors times one line.
struct Accumulator {
    Line line[kTall];

    /// line[i] += factors[i * kStep] * x
    template <int kStep>
    KVJIT_INLINE void add(const float* factors, const Line& x) {
#pragma clang loop unroll(full)
        for (int i = 0; i < kTall; ++i) {
            const vf<kLanes> factor(factors[i * kStep]);
            for (int w = 0; w < kWide; ++w) line[i].of[w] = fma<kLanes>(factor, x.of[w], line[i].of[w]);
        }
    }
};

/// scores[k][row] = key k · query row, for `count` keys, rounded up to kTall. keys: kBlockKeys rows of kPadDim; query:
/// kHeadDim lines.
KVJIT_INLINE void score_block(float* scores, const float* keys, const float* query, i64 count) {
#pragma clang loop unroll(disable)
    for (i64 k = 0; k < count; k += kTall) {
        Accumulator sums;
        for (int i = 0; i < kTall; ++i) sums.line[i] = line_of(0.0f);
#pragma clang loop unroll_count(2)
        for (int d = 0; d < kHeadDim; ++d)
            sums.add<kPadDim>(keys + k * kPadDim + d, load_line(query + d * kTileRows));
        for (int i = 0; i < kTall; ++i) store_line(scores + (k + i) * kTileRows, sums.line[i]);
    }
}

/// sums[d][row] = sums[d][row] * keep[row] + probabilities[k][row] * value k [d], over the `count` keys in `order`.
KVJIT_INLINE void add_block(float* sums, const float* probabilities, const float* values, const Line& keep,
                            const u8* order, i64 count) {
#pragma clang loop unroll(disable)
    for (int d = 0; d < kHeadDim; d += kTall) {
        Accumulator sum;
        for (int i = 0; i < kTall; ++i) {
            sum.line[i] = load_line(sums + (d + i) * kTileRows);
            for (int w = 0; w < kWide; ++w) sum.line[i].of[w] *= keep.of[w];
        }
#pragma clang loop unroll_count(2)
        for (i64 x = 0; x < count; ++x) {
            const i64 k = kMaskRank > 0 ? order[x] : x;
            sum.add<1>(values + k * kPadDim + d, load_line(probabilities + k * kTileRows));
        }
        for (int i = 0; i < kTall; ++i) store_line(sums + (d + i) * kTileRows, sum.line[i]);
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

/// Swaps blocks of kStep lanes with blocks of kStep vectors, then smaller ones.
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
KVJIT_INLINE void transpose_square(float* to, i64 to_stride, const float* from, i64 from_stride) {
    vf<kLanes> v[kLanes];
#pragma clang loop unroll(full)
    for (int i = 0; i < kLanes; ++i) v[i] = load<kLanes>(from + i * from_stride);
    transpose<kLanes / 2, kLanes>(v);
#pragma clang loop unroll(full)
    for (int i = 0; i < kLanes; ++i) store<kLanes>(to + i * to_stride, v[i]);
}

/// The first kPadDim columns of kLanes rows become lines, and lines rows.
KVJIT_INLINE void rows_to_lines(float* lines, const float* rows) {
    for (int d = 0; d < kPadDim; d += kLanes) transpose_square(lines + d * kTileRows, kTileRows, rows + d, kPadDim);
}
KVJIT_INLINE void lines_to_rows(float* rows, const float* lines) {
    for (int d = 0; d < kPadDim; d += kLanes) transpose_square(rows + d, kPadDim, lines + d * kTileRows, kTileRows);
}

}  // namespace kvjit
