// The frame of prefill by AMX's products.
#pragma once

#include "common/abi.h"
#include "common/score.h"
#include "common/slots.h"
#include "cpu/attend/tile_products.h"

namespace kvjit {

static_assert(kHeadDim % 8 == 0 && kGroup >= 1);
static_assert(!kQuantised || kHeadDim % kQuantGroup == 0);
static_assert(!kSame<T1, float> && !kSame<T2, float>);

// ---- Work split: panels of tiles, whose rows are (token, query head) of one kv head, heads inner -------------------

struct alignas(64) Tile : TileRows {
    u32 query[kQueryTerms * kRowPairs * kTileRows];
    float sums[kWideDim * kTileRows];  // of probabilities times values, in this chunk
    bool fresh;                        // no sums so far
};

constexpr int larger_of(int a, int b) {
    return a > b ? a : b;
}
/// Floats to transpose queries, masks and values in.
inline constexpr int kSquareFloats = larger_of(kLanes * larger_of(kPartKeys, kQueryTerms* kWideDim), kValueScratch);
inline constexpr int kMaskFloats = kMaskRank > 0 ? kPartKeys* kTileRows : kLanes;

/// As many as the promised stack has room for (docs/threads.md), beside a block's buffers.
constexpr int panel_tiles() {
    constexpr int kMost = 568 * 1024;
    constexpr int kBlock = 4 * (kBlockKeys * (kKeyStride + kPairStride / 2) + kValueNumbers + kPartKeys * kTileRows +
                                kMaskFloats + kSquareFloats) +
                           static_cast<int>(sizeof(ListedBlocks));
    constexpr int kTile = static_cast<int>(sizeof(Tile)) + 4 * (kPadDim + 2) * kTileRows;
    const int tiles = (kMost - kBlock) / kTile, most = kPanelRows / kTileRows;
    return tiles < 1 ? 1 : tiles < most ? tiles : most;
}
inline constexpr int kPanelTiles = panel_tiles();

struct alignas(64) Buffers {
    Tile tiles[kPanelTiles];
    ListedBlocks blocks;
    u32 keys[kBlockKeys * kKeyStride];
    TileRowsAt key_tiles[kBlockKeys / 16];
    alignas(64) u32 values[kValueNumbers];
    alignas(64) float scores[kPartKeys * kTileRows];
    alignas(64) u32 probabilities[kBlockKeys / 2 * kPairStride];
    float masks[kMaskFloats];
    alignas(64) float rows[kSquareFloats];
    float acc[kPanelTiles * kTileRows * kPadDim];
    Running running[kPanelTiles * kTileRows];
    float rescale[kTileRows];
    bool nonfinite;         // some value of the block
    bool seen[kBlockKeys];  // where that is so: which keys some row of the tile sees

    u32* pairs() { return reinterpret_cast<u32*>(rows); }
    SumRows sum_rows(i64 t, i64 first) { return kvjit::sum_rows(tiles[t].sums, first, rows); }
};
static_assert(sizeof(Buffers) <= 572 * 1024, "a task's frame takes 600 KiB at most");

// ---- Load Q --------------------------------------------------------------------------------------------------------

KVJIT_NOINLINE void load_query_tile(const Panel& panel, Buffers& buffers, i64 t) {
    constexpr int kRow = kQueryTerms * kRowPairs;
    Tile& tile = buffers.tiles[t];
    tile.first_row = panel.first_row + t * kTileRows;
    tile.lanes = kTileRows;
    load_tile(
        panel, tile, t, [&](i64 lane, const T1* query) { pack_query(buffers.pairs() + lane * kRow, query); },
        [&](i64 r) {
            float* to = reinterpret_cast<float*>(tile.query) + r;
#pragma clang loop unroll(disable)
            for (int f = 0; f < kRow; f += kLanes)
                transpose_square(to + f * kTileRows, kTileRows, buffers.rows + f, kRow);
        });
}

// ---- Per key block: scores, mask, online softmax, PV ---------------------------------------------------------------

/// ahead: values to fetch meanwhile.
KVJIT_INLINE void pack_block(const Panel& panel, Buffers& buffers, const ListedBlock& block, const RowsAhead& ahead) {
    pack_keys(buffers.keys, buffers.key_tiles, {block.key_rows, panel.head, block.keys, nullptr});
    buffers.nonfinite =
        pack_values(buffers.values, buffers.pairs(), {block.value_rows, panel.head, block.keys, nullptr}, ahead);
}

/// Hides keys that are not in `keys` up to whole steps.
KVJIT_INLINE void hide_padding(float* scores, KeyRange keys) {
    const auto hide = [&](i64 begin, i64 end) {
#pragma clang loop unroll(disable)
        for (i64 k = begin; k < end; ++k) store<kLanes>(scores + k * kTileRows, vf<kLanes>(-kInfinity));
    };
    const auto [begin, end] = whole_steps(keys);
    hide(begin, keys.begin);
    hide(keys.end, end);
}

/// Writes pairs of probabilities (panel.h) of a part's numbers. The sum is of unrounded ones.
KVJIT_INLINE vf<kLanes> exponentiate_rows(u32* pairs, const float* numbers, KeyRange keys, const Softmax& softmax,
                                          vf<kLanes> sum) {
    const auto [begin, end] = whole_steps(keys);
#pragma clang loop unroll_count(2)
    for (i64 k = begin; k < end; k += 2) {
        const float* at = numbers + k * kTileRows;
        const vf<kLanes> even = softmax.probabilities<kPowerDegree>(load<kLanes>(at));
        const vf<kLanes> odd = softmax.probabilities<kPowerDegree>(load<kLanes>(at + kTileRows));
        sum = sum + even + odd;
        pack_probabilities(pairs + k / 2 * kPairStride, even, odd);
    }
    return sum;
}

/// Notes which of the part's keys, the block's from `at` on, some row of the tile sees.
KVJIT_NOINLINE void note_seen(Buffers& buffers, i64 at, KeyRange keys) {
#pragma clang loop unroll(disable)
    for (i64 k = keys.begin; k < keys.end; ++k) {
        const vi<kTileRows> hidden = load<kTileRows>(buffers.scores + k * kTileRows) == Line(-kInfinity);
        buffers.seen[at + k] = !__builtin_reduce_and(hidden);
    }
}

/// A tile's turn on a block.
struct Turn {
    const Panel& panel;
    TileRegisters& registers;
    Tile& tile;
    Buffers& buffers;
    const ListedBlock& listed;
    BlockAhead ahead;
};

/// Adds the probabilities of `keys` times their values. Values of keys that no row of the tile sees are left out: not
/// even 0 times a NaN is 0. Without masks some row sees each of these keys.
KVJIT_NOINLINE void add_values(const Turn& turn, KeyRange keys) {
    Buffers& buffers = turn.buffers;
    if (keys.empty()) return;
    if (buffers.nonfinite)
        pack_values(buffers.values, buffers.pairs(),
                    {turn.listed.value_rows, turn.panel.head, keys, kMaskRank > 0 ? buffers.seen : nullptr},
                    turn.ahead.without_fetch().values());
    add_keys(turn.registers, turn.tile.sums, buffers.probabilities, buffers.values, buffers.rows, turn.tile.fresh, keys,
             turn.ahead.values());
    turn.tile.fresh = false;
}

/// Scores and probabilities of the part of a block at `at`. `pending`: keys whose probabilities are not yet added, of
/// which none is left where some row's max was raised.
KVJIT_NOINLINE void attend_part(const Turn& turn, i64 at, KeyRange keys, KeyRange& pending) {
    Tile& tile = turn.tile;
    Buffers& buffers = turn.buffers;
    score_part(turn.registers, buffers.scores, at, buffers.key_tiles, tile.query, keys, turn.ahead.keys());
    const Block part = {turn.listed.begin + at, {keys.begin - at, keys.end - at}};
    if constexpr (kMaskRank > 0) load_masks<kPartKeys>(turn.panel, tile, buffers.masks, buffers.rows, part);
    const bool raised = find_largest(turn.panel, tile, buffers, part, kSlack);
    if (kMaskRank > 0 && buffers.nonfinite) note_seen(buffers, at, part.keys);
    if (raised) {
        add_values(turn, pending);
        if (!tile.fresh) rescale_sums(tile.sums, buffers.rescale);
        pending.begin = keys.begin;
    }
    pending.end = keys.end;
    exponentiate_tile(turn.panel, tile, buffers, [&](float* scores, const Softmax& softmax, vf<kLanes> sum) {
        if (scores != buffers.scores) turn.registers.stay_awake();  // halfway
        hide_padding(scores, part.keys);
        u32* pairs = buffers.probabilities + at / 2 * kPairStride + (scores - buffers.scores);
        return exponentiate_rows(pairs, scores, part.keys, softmax, sum);
    });
}

KVJIT_INLINE void attend_keys(const Turn& turn) {
    const KeyRange keys =
        common_part(turn.listed.keys, part_from(turn.listed.begin, kBlockKeys, turn.tile.seen_by_some));
    if (keys.empty()) return;
    KeyRange pending = {keys.begin, keys.begin};
#pragma clang loop unroll(disable)
    for (i64 at = keys.begin / kPartKeys * kPartKeys; at < keys.end; at += kPartKeys)
        attend_part(turn, at, common_part(keys, {at, at + kPartKeys}), pending);
    add_values(turn, pending);
}

KVJIT_INLINE void begin_chunk(Tile& tile) {
    store<kTileRows>(tile.max, Line(-kInfinity));
    store<kTileRows>(tile.sum, Line(0.0f));
    tile.fresh = true;
}

/// The last tile, which sees the next block if any does, fetches it.
KVJIT_NOINLINE void attend_block(const Panel& panel, TileRegisters& registers, Buffers& buffers, i64 begin,
                                 KeyRange seen) {
    const BlockAhead ahead = list_ahead(panel, buffers.blocks, begin, seen);
    const ListedBlock& listed = buffers.blocks.at(begin);
    pack_block(panel, buffers, listed, ahead.values());
#pragma clang loop unroll(disable)
    for (i64 t = 0; t < panel.tiles; ++t)
        attend_keys({panel, registers, buffers.tiles[t], buffers, listed,
                     t + 1 == panel.tiles ? ahead : ahead.without_fetch()});
}

KVJIT_INLINE void attend_chunk(const Panel& panel, TileRegisters& registers, Buffers& buffers, KeyRange keys) {
#pragma clang loop unroll(disable)
    for (i64 t = 0; t < panel.tiles; ++t) begin_chunk(buffers.tiles[t]);
    const KeyRange seen = seen_by_panel(panel, buffers);
#pragma clang loop unroll(disable)
    for (i64 begin = keys.begin / kBlockKeys * kBlockKeys; begin < keys.end; begin += kBlockKeys)
        attend_block(panel, registers, buffers, begin, seen);
#pragma clang loop unroll(disable)
    for (i64 t = 0; t < panel.tiles; ++t) {
        if (buffers.tiles[t].fresh) clear(buffers.tiles[t].sums, kWideDim * kTileRows);
    }
}

// ---- Items: merging and storing is attend_chunks of panel.h --------------------------------------------------------

KVJIT_INLINE void attend_panel(const Panel& panel, TileRegisters& registers, Buffers& buffers) {
#pragma clang loop unroll(disable)
    for (i64 t = 0; t < panel.tiles; ++t) load_query_tile(panel, buffers, t);
    attend_chunks(panel, buffers, [&](KeyRange keys) { attend_chunk(panel, registers, buffers, keys); });
}

KVJIT_INLINE void attend_item(const abi::AttendArgs& args, const abi::AttendItem& item) {
    Buffers buffers;
    TileRegisters registers;
    for_each_panel<kPanelTiles>(args, item, [&](const Panel& panel) { attend_panel(panel, registers, buffers); });
}

}  // namespace kvjit
