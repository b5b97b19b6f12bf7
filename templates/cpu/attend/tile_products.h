// The products of attend by AMX: 32 keys or elements times the rows of a tile, 16 x 16 sums in each of four registers.
#pragma once

#include "cpu/attend/tile_operands.h"
#include "cpu/machine/tiles/contract.h"

namespace kvjit {

/// Registers: sums 0 to 3, of which 0 and 1 are of the first 16 lines and 2 and 3 of the next; then two tiles of lines,
/// and two of rows. A tile of 16 rows has no second half.
inline constexpr int kA = 4, kB = 6;
inline constexpr bool kTwoHalves = kTileRows == 32;
static_assert(kTileRows == 16 || kTwoHalves);

template <int kTile>
KVJIT_INLINE void load_tile_rows(TileRegisters& tiles, TileRowsAt rows) {
    tiles.load<kTile>(rows.first, rows.stride);
}

/// f.template operator()<register>(line of 16 lines, lane) for each register of sums.
template <class F>
KVJIT_INLINE void for_each_sum(F&& f) {
    f.template operator()<0>(0, 0);
    f.template operator()<2>(16, 0);
    if constexpr (kTwoHalves) {
        f.template operator()<1>(0, 16);
        f.template operator()<3>(16, 16);
    }
}

KVJIT_INLINE void zero_sums(TileRegisters& tiles) {
    for_each_sum([&]<int kSum>(int, int) { tiles.zero<kSum>(); });
}
KVJIT_INLINE void load_sums(TileRegisters& tiles, const float* lines) {
    for_each_sum(
        [&]<int kSum>(int line, int lane) { tiles.load<kSum>(lines + line * kTileRows + lane, 4 * kTileRows); });
}
KVJIT_INLINE void store_sums(TileRegisters& tiles, float* lines) {
    for_each_sum(
        [&]<int kSum>(int line, int lane) { tiles.store<kSum>(lines + line * kTileRows + lane, 4 * kTileRows); });
}

/// sums += a * b, where a(term, half) and b(term, half) give the tiles of each term's halves; without products of terms
/// i and j with i + j >= kOrders.
template <int kATerms, int kBTerms, int kOrders, class A, class B>
KVJIT_INLINE void multiply_step(TileRegisters& tiles, A&& a, B&& b) {
#pragma clang loop unroll(full)
    for (int i = 0; i < kATerms; ++i) {
        load_tile_rows<kA>(tiles, a(i, 0));
        load_tile_rows<kA + 1>(tiles, a(i, 1));
#pragma clang loop unroll(full)
        for (int j = 0; j < kBTerms && i + j < kOrders; ++j) {
            load_tile_rows<kB>(tiles, b(j, 0));
            if constexpr (kTwoHalves) load_tile_rows<kB + 1>(tiles, b(j, 1));
            for_each_sum([&]<int kSum>(int, int) { tiles.multiply_bfloat16<kSum, kA + kSum / 2, kB + kSum % 2>(); });
        }
    }
}

/// All: as second terms have the signs of the first, scores would become smaller by 2^-16 of themselves without
/// products of both, and large ones are off by much then.
inline constexpr int kScoreOrders = kKeyTerms + kQueryTerms - 1;

/// scores[k - part][row] = key k · query row, for the keys of whole steps. keys: tiles of 16 keys; query: kRowPairs
/// lines of pairs for each term.
KVJIT_NOINLINE void score_part(TileRegisters& tiles, float* scores, i64 part, const TileRowsAt* keys, const u32* query,
                               KeyRange range, const RowsAhead& ahead) {
    const auto [begin, end] = whole_steps(range);
#pragma clang loop unroll(disable)
    for (i64 k = begin; k < end; k += kStepKeys) {
        zero_sums(tiles);
#pragma clang loop unroll(disable)
        for (int f = 0; f < kRowPairs; f += 16) {
            fetch_line(ahead, k, f / 16);
            multiply_step<kKeyTerms, kQueryTerms, kScoreOrders>(
                tiles,
                [&](int term, int half) -> TileRowsAt {
                    const TileRowsAt& rows = keys[k / 16 + half];
                    return {rows.first + 4 * (term * kRowPairs + f), rows.stride};
                },
                [&](int term, int half) -> TileRowsAt {
                    return {bytes_at(query + (term * kRowPairs + f) * kTileRows + 16 * half), 4 * kTileRows};
                });
        }
        store_sums(tiles, scores + (k - part) * kTileRows);
    }
}

}  // namespace kvjit
