// Values of prefill by AMX: transposed, so that they multiply a tile's probabilities as softmax leaves them, a line for
// each pair of keys, and sums have a line for each element. That is paid once for all tiles of a panel.
#pragma once

#include "cpu/attend/prefill_rows.h"
#include "cpu/attend/tile_terms.h"

namespace kvjit {

/// As many keys as leave room in the second-level cache for the rows of a panel.
constexpr int block_keys() {
    constexpr int kMost = 192 * 1024;
    constexpr int kBytesPerKey = 4 * kKeyStride + 2 * kWideDim * kValueTerms + 2 * kTileRows * kProbabilityTerms;
    int keys = 256;
    while (keys > kPartKeys && keys * kBytesPerKey > kMost) keys /= 2;
    return keys;
}
inline constexpr int kBlockKeys = block_keys();

}  // namespace kvjit

#include "cpu/attend/tile_products.h"

namespace kvjit {

/// Rows of a panel, for all of which values are packed once.
inline constexpr int kPanelRows = 256;
/// By how much a score may be larger than a row's max: sums are not rescaled for less, and probabilities stay small.
inline constexpr float kSlack = 8;
/// Numbers of a block's values, and to pack a step of them in.
inline constexpr int kValueNumbers = kBlockKeys * kRowPairs * kValueTerms;
inline constexpr int kValueScratch = kValueTerms * kStepPairs;

/// Pairs of elements d..d+N-1 of the values of two keys, the second terms kTermStride further on.
template <int N, int kTermStride>
KVJIT_INLINE void pack_elements(u32* to, const RowAt& even, const RowAt& odd, int d) {
    if constexpr (kKeyTerms == 1) {
        store_vector(to + d, pair_up<N>(row_bits<N>(even, d), row_bits<N>(odd, d)));
        return;
    }
    const vf<N> first = row_numbers<N>(even, d), second = row_numbers<N>(odd, d);
    if constexpr (kValueTerms == 1) {
        store_vector(to + d, pair_up<N>(round_to_bfloat16<N>(first), round_to_bfloat16<N>(second)));
    } else {
        const Halves<N> a = split<N>(first), b = split<N>(second);
        store_vector(to + d, pair_upper<N>(a.first, b.first));
        store_vector(to + kTermStride + d, pair_upper<N>(a.second, b.second));
    }
}

/// Writes the pairs of the values of keys first..first+31. Of a key that doesn't count they are zeros.
KVJIT_INLINE void pack_pairs(u32* pairs, const PackedRows& from, i64 first) {
#pragma clang loop unroll(disable)
    for (i64 pair = 0; pair < 16; ++pair) {
        const RowAt even = from.row(first + 2 * pair), odd = from.row(first + 2 * pair + 1);
        for_each_vector_rolled<kHeadDim>(
            [&]<int N>(int d) { pack_elements<N, kStepPairs>(pairs + pair * kWideDim, even, odd, d); });
    }
}

/// The tile of elements 16*column.. of 32 values from key 32*step on: a row for each element, with 16 pairs.
KVJIT_INLINE u32* value_tile(u32* values, i64 column, i64 step, int term) {
    return values + ((column * (kBlockKeys / kStepKeys) + step) * kValueTerms + term) * 256;
}

/// Writes the tiles of one term of a step.
KVJIT_NOINLINE void transpose_values(u32* values, i64 step, int term, const u32* pairs) {
#pragma clang loop unroll(disable)
    for (int column = 0; column < kWideDim / 16; ++column) {
        float* tile = reinterpret_cast<float*>(value_tile(values, column, step, term));
        const float* from = reinterpret_cast<const float*>(pairs + 16 * column);
#pragma clang loop unroll(disable)
        for (int d = 0; d < 16; d += kLanes) {
#pragma clang loop unroll(disable)
            for (int pair = 0; pair < 16; pair += kLanes)
                transpose_square(tile + d * 16 + pair, 16, from + pair * kWideDim + d, kWideDim);
        }
    }
}

/// Packs values into tiles. scratch: kValueScratch numbers. Returns whether one isn't finite.
KVJIT_NOINLINE bool pack_values(u32* values, u32* scratch, const PackedRows& from, const RowsAhead&) {
    const auto [begin, end] = whole_steps(from.keys);
    bool nonfinite = false;
    clear_pair_padding(scratch, kValueTerms * 16);
#pragma clang loop unroll(disable)
    for (i64 first = begin; first < end; first += kStepKeys) {
        pack_pairs(scratch, from, first);
        nonfinite |= has_nonfinite(scratch);
#pragma clang loop unroll(disable)
        for (int term = 0; term < kValueTerms; ++term)
            transpose_values(values, first / kStepKeys, term, scratch + term * kStepPairs);
    }
    return nonfinite;
}

/// Without products of both second terms: up to 2^-14 of a sum's sizes, most often a quarter of that.
inline constexpr int kValueOrders = kValueTerms > kProbabilityTerms ? kValueTerms : kProbabilityTerms;

/// sums[d][row] += sum over the keys k of whole steps of probabilities[k][row] * value k [d]; fresh: the sums are 0 so
/// far, whatever lies there.
KVJIT_NOINLINE void add_keys(TileRegisters& tiles, float* sums, const u32* probabilities, u32* values, float*,
                             bool fresh, KeyRange range, const RowsAhead& ahead) {
    const auto [begin, end] = whole_steps(range);
#pragma clang loop unroll(disable)
    for (int d = 0; d < kWideDim; d += 32) {
        if (fresh)
            zero_sums(tiles);
        else
            load_sums(tiles, sums + d * kTileRows);
#pragma clang loop unroll(disable)
        for (i64 k = begin; k < end; k += kStepKeys) {
            fetch_line(ahead, k, d / 32);
            multiply_step<kValueTerms, kProbabilityTerms, kValueOrders>(
                tiles,
                [&](int term, int half) -> TileRowsAt {
                    return {bytes_at(value_tile(values, d / 16 + half, k / kStepKeys, term)), 64};
                },
                [&](int term, int half) -> TileRowsAt {
                    return {bytes_at(probabilities + k / 2 * kPairStride + term * kTileRows + 16 * half),
                            4 * kPairStride};
                });
        }
        store_sums(tiles, sums + d * kTileRows);
    }
}

/// Multiplies the tile's sums by `rescale`, unless it is 1 in every row.
KVJIT_NOINLINE void rescale_sums(float* sums, const float* rescale) {
    const Line factor = load<kTileRows>(rescale);
    const vi<kTileRows> same = factor == Line(1.0f);
    if (__builtin_reduce_and(same)) return;
#pragma clang loop unroll_count(4)
    for (int d = 0; d < kHeadDim; ++d)
        store<kTileRows>(sums + d * kTileRows, load<kTileRows>(sums + d * kTileRows) * factor);
}

/// The sums of kLanes rows from `first` on. scratch: kLanes * kPadDim floats.
KVJIT_INLINE SumRows sum_rows(float* sums, i64 first, float* scratch) {
    return lines_to_rows(scratch, sums + first);
}

}  // namespace kvjit
