// Values of decode by AMX: pairs of two keys' elements as they come, which a tile's probabilities multiply from the
// left. For few rows it takes less to transpose their probabilities than the values. Sums have a row for each row of
// the tile.
#pragma once

#include "cpu/attend/tile_terms.h"

namespace kvjit {

static_assert(kQueryTerms == 1 && kKeyTerms == 1, "queries, keys and values are bfloat16");

/// Rows of a tile: what one of AMX's holds.
inline constexpr int kTileRows = 16;
/// Keys of a block: its rows are fetched while the block before it is worked on.
inline constexpr int kBlockKeys = kPartKeys;
/// Rows that come next are fetched by the work on vectors: products are few.
inline constexpr bool kFetchesByLine = false;

}  // namespace kvjit

#include "cpu/attend/tile_products.h"

namespace kvjit {

/// Rows of a panel: those of one token, or of more that fit one tile (generator/src/decode_tokens.cc).
inline constexpr int kPanelRows = (kGroup + kTileRows - 1) / kTileRows * kTileRows;
/// By how much a score may be larger than a row's max before sums are rescaled: that takes little time for few rows.
inline constexpr float kSlack = 0;

// ---- Packing -------------------------------------------------------------------------------------------------------

/// Numbers of a block's values. To pack them takes no more.
inline constexpr int kValueNumbers = kBlockKeys / kStepKeys * kStepPairs;
inline constexpr int kValueScratch = 0;

/// Columns of 32 elements from a multiple of 32 on are in the order in which instructions unpack them: the first four
/// of each eight elements, then the others. Elements that are left over are in order.
inline constexpr int kUnpacked = kHeadDim / 32 * 32;

/// The pairs of the first four (kPart 0) or the other four of each eight elements.
template <int kPart, int... I>
KVJIT_INLINE vec<u16, 32> unpack(vec<u16, 32> even, vec<u16, 32> odd, Sequence<int, I...>) {
    return __builtin_shufflevector(even, odd, (I / 8 * 8 + I % 8 / 2 + kPart * 4 + I % 2 * 32)...);
}

KVJIT_INLINE void pack_row_pair(u32* to, const T2* even, const T2* odd) {
#pragma clang loop unroll_count(4)
    for (int d = 0; d < kUnpacked; d += 32) {
        const vec<u16, 32> first = load_raw<u16, 32>(even + d), second = load_raw<u16, 32>(odd + d);
        store_vector(to + d, unpack<0>(first, second, Lanes<32>{}));
        store_vector(to + d + 16, unpack<1>(first, second, Lanes<32>{}));
    }
#pragma clang loop unroll(disable)
    for (int d = kUnpacked; d < kHeadDim; d += 8)
        store_vector(to + d, pair_up<8>(load_raw<u16, 8>(even + d), load_raw<u16, 8>(odd + d)));
}

/// Packs the values of keys first..first+31. whole: all of them count.
template <class F>
KVJIT_INLINE void pack_step(u32* pairs, const PackedRows& from, i64 first, bool whole, F&& fetch) {
    const char* const* rows = from.rows.row;
    const i64 offset = from.head * from.rows.head_stride;
    const auto row = [&](i64 k) {
        return whole || from.has(k) ? reinterpret_cast<const T2*>(rows[k] + offset) : kZeroCodes;
    };
#pragma clang loop unroll(disable)
    for (i64 k = first; k < first + kStepKeys; k += 2, pairs += kWideDim) {
        pack_row_pair(pairs, row(k), row(k + 1));
        fetch(k);
    }
}

/// Packs values. Returns whether one isn't finite, where that matters: without masks some row of each tile sees each
/// key of the block, as a panel has one tile, or one token.
KVJIT_NOINLINE bool pack_values(u32* values, u32*, const PackedRows& from, const RowsAhead& ahead) {
    const KeyRange steps = whole_steps(from.keys);
    const auto fetch = fetch_pairs(ahead, 0);
    bool nonfinite = false;
#pragma clang loop unroll(disable)
    for (i64 first = steps.begin; first < steps.end; first += kStepKeys) {
        u32* pairs = values + first / kStepKeys * kStepPairs;
        const bool whole = from.seen == nullptr && from.keys.holds({first, first + kStepKeys});
        pack_step(pairs, from, first, whole, fetch);
        if constexpr (kMaskRank > 0) {
            clear_pair_padding(pairs, 16);
            nonfinite |= has_nonfinite(pairs);
        }
    }
    return nonfinite;
}

// ---- Products ------------------------------------------------------------------------------------------------------

/// Floats from one row's sums to the next row's: columns of 16.
inline constexpr int kSumStride = (kHeadDim + 15) / 16 * 16;
static_assert(kSumStride <= kWideDim && kSumStride >= kPadDim);

template <int... kColumn>
KVJIT_INLINE void load_columns(TileRegisters& tiles, const float* sums, Sequence<int, kColumn...>) {
    (tiles.load<kColumn>(sums + 16 * kColumn, 4 * kSumStride), ...);
}
template <int... kColumn>
KVJIT_INLINE void zero_columns(TileRegisters& tiles, Sequence<int, kColumn...>) {
    (tiles.zero<kColumn>(), ...);
}
template <int... kColumn>
KVJIT_INLINE void store_columns(TileRegisters& tiles, float* sums, Sequence<int, kColumn...>) {
    (tiles.store<kColumn>(sums + 16 * kColumn, 4 * kSumStride), ...);
}

/// Column kColumn += probabilities of a step, in register kA, times values.
template <int kColumn>
KVJIT_INLINE void multiply_column(TileRegisters& tiles, const u32* values) {
    constexpr int kValues = kB + kColumn % 2;
    tiles.load<kValues>(values + 16 * kColumn, 4 * kWideDim);
    tiles.multiply_bfloat16<kColumn, kA, kValues>();
}
template <int... kColumn>
KVJIT_INLINE void multiply_columns(TileRegisters& tiles, const u32* values, Sequence<int, kColumn...>) {
    (multiply_column<kColumn>(tiles, values), ...);
}

/// sums[row][d] += the products of kColumns columns of values, as add_keys says.
template <int kColumns>
KVJIT_INLINE void add_columns(TileRegisters& tiles, float* sums, const u32* probabilities, const u32* values,
                              bool fresh, KeyRange steps) {
    const Lanes<kColumns> columns;
    if (fresh)
        zero_columns(tiles, columns);
    else
        load_columns(tiles, sums, columns);
#pragma clang loop unroll(disable)
    for (i64 k = steps.begin; k < steps.end; k += kStepKeys) {
        tiles.load<kA>(probabilities + k / kStepKeys * 256, 64);
        multiply_columns(tiles, values + k / kStepKeys * kStepPairs, columns);
    }
    store_columns(tiles, sums, columns);
}

/// sums[row][d] += sum over the keys k of whole steps of probabilities[k][row] * value k [d]; fresh: the sums are 0 so
/// far, whatever lies there. scratch: 8 floats for each key of a block.
KVJIT_NOINLINE void add_keys(TileRegisters& tiles, float* sums, const u32* probabilities, u32* values, float* scratch,
                             bool fresh, KeyRange range, const RowsAhead&) {
    const KeyRange steps = whole_steps(range);
    const float* pairs = reinterpret_cast<const float*>(probabilities);
#pragma clang loop unroll(disable)
    for (i64 k = steps.begin; k < steps.end; k += kStepKeys) {
#pragma clang loop unroll(disable)
        for (i64 at = 0; at < 256; at += 16 * kLanes) {
#pragma clang loop unroll(disable)
            for (i64 row = 0; row < 16; row += kLanes)
                transpose_square(scratch + 8 * k + 16 * row + at / 16, 16, pairs + 8 * k + at + row, 16);
        }
    }
    constexpr int kTogether = 4, kColumns = kSumStride / 16, kRest = kColumns % kTogether;
    const u32* rows = reinterpret_cast<const u32*>(scratch);
#pragma clang loop unroll(disable)
    for (int d = 0; d < 16 * (kColumns - kRest); d += 16 * kTogether)
        add_columns<kTogether>(tiles, sums + d, rows, values + d, fresh, steps);
    if constexpr (kRest != 0)
        add_columns<kRest>(tiles, sums + kSumStride - 16 * kRest, rows, values + kSumStride - 16 * kRest, fresh, steps);
}

/// Multiplies the sums of rows whose `rescale` isn't 1 by it.
KVJIT_NOINLINE void rescale_sums(float* sums, const float* rescale) {
#pragma clang loop unroll(disable)
    for (int r = 0; r < kTileRows; ++r, sums += kSumStride) {
        if (rescale[r] == 1.0f) continue;
#pragma clang loop unroll(disable)
        for (int d = 0; d < kSumStride; d += kLanes)
            store<kLanes>(sums + d, load<kLanes>(sums + d) * vf<kLanes>(rescale[r]));
    }
}

template <int kPart, int... I>
KVJIT_INLINE vf<16> unpacked_elements(vf<32> columns, Sequence<int, I...>) {
    return __builtin_shufflevector(columns, columns, (kPart * 8 + I / 8 * 4 + I % 8 / 4 * 16 + I % 4)...);
}

/// The sums of kLanes rows from `first` on, whose columns are put into the elements' order.
KVJIT_INLINE SumRows sum_rows(float* sums, i64 first, float*) {
    float* row = sums + first * kSumStride;
#pragma clang loop unroll(disable)
    for (int r = 0; r < kLanes; ++r, row += kSumStride) {
#pragma clang loop unroll(disable)
        for (int d = 0; d < kUnpacked; d += 32) {
            const vf<32> columns = load<32>(row + d);
            store<16>(row + d, unpacked_elements<0>(columns, Lanes<16>{}));
            store<16>(row + d + 16, unpacked_elements<1>(columns, Lanes<16>{}));
        }
    }
    return {sums + first * kSumStride, kSumStride};
}

}  // namespace kvjit
