// The frame of attend by AMX's products. Before it a variant includes tile_values.h or tile_pairs.h, which define the
// shape of tiles and blocks, and how values are packed and their products summed.
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

/// A block with the addresses of its keys and values.
struct ListedBlock : Block {
    RowList<kBlockKeys> key_rows, value_rows;
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
                           2 * static_cast<int>(sizeof(ListedBlock));
    constexpr int kTile = static_cast<int>(sizeof(Tile)) + 4 * (kPadDim + 2) * kTileRows;
    const int tiles = (kMost - kBlock) / kTile, most = kPanelRows / kTileRows;
    return tiles < 1 ? 1 : tiles < most ? tiles : most;
}
inline constexpr int kPanelTiles = panel_tiles();

struct alignas(64) Buffers {
    Tile tiles[kPanelTiles];
    ListedBlock blocks[2];  // even and odd ones: the present, and the next, to be fetched meanwhile
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

KVJIT_NOINLINE void list_block(const Panel& panel, ListedBlock& listed, const Block& block) {
    const abi::Cache& cache = panel.args.cache;
    const TableRow table = table_row(panel.args.table, panel.item.sequence);
    const auto [first, count] = KeyRange{block.keys.begin, block.keys.count()};
    listed.begin = block.begin;
    listed.keys = block.keys;
    if (block.keys.empty()) return;
    list_rows(listed.key_rows, first, table, {cache.key, cache.key_scale, block.begin + first, count});
    list_rows(listed.value_rows, first, table, {cache.value, cache.value_scale, block.begin + first, count});
}

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

/// Writes pairs of probabilities (panel.h) of a part's numbers. The sum is of unrounded ones. `fetch(k)` is called
/// with each pair's first key.
template <class F>
KVJIT_INLINE vf<kLanes> exponentiate_rows(u32* pairs, const float* numbers, KeyRange keys, vf<kLanes> factor,
                                          vf<kLanes> shift, vf<kLanes> sum, F&& fetch) {
    const auto [begin, end] = whole_steps(keys);
#pragma clang loop unroll_count(2)
    for (i64 k = begin; k < end; k += 2) {
        const float* at = numbers + k * kTileRows;
        const vf<kLanes> even = probability_of(load<kLanes>(at), factor, shift);
        const vf<kLanes> odd = probability_of(load<kLanes>(at + kTileRows), factor, shift);
        sum = sum + even + odd;
        pack_probabilities(pairs + k / 2 * kPairStride, even, odd);
        fetch(k);
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
    const ListedBlock& next;
    i64 next_head;
    KeyRange ahead;  // keys of `next` that this turn fetches

    RowsAhead next_keys(KeyRange keys) const { return {next.key_rows, next_head, keys}; }
    RowsAhead next_values(KeyRange keys) const { return {next.value_rows, next_head, keys}; }
};

/// Adds the probabilities of `keys` times their values. Values of keys that no row of the tile sees are left out: not
/// even 0 times a NaN is 0. Without masks some row sees each of these keys.
KVJIT_NOINLINE void add_values(const Turn& turn, KeyRange keys) {
    Buffers& buffers = turn.buffers;
    if (keys.empty()) return;
    if (buffers.nonfinite)
        pack_values(buffers.values, buffers.pairs(),
                    {turn.listed.value_rows, turn.panel.head, keys, kMaskRank > 0 ? buffers.seen : nullptr},
                    turn.next_values({}));
    add_keys(turn.registers, turn.tile.sums, buffers.probabilities, buffers.values, buffers.rows, turn.tile.fresh, keys,
             turn.next_values(turn.ahead));
    turn.tile.fresh = false;
}

/// Scores and probabilities of the part of a block at `at`. `pending`: keys whose probabilities are not yet added, of
/// which none is left where some row's max was raised.
KVJIT_NOINLINE void attend_part(const Turn& turn, i64 at, KeyRange keys, KeyRange& pending) {
    Tile& tile = turn.tile;
    Buffers& buffers = turn.buffers;
    score_part(turn.registers, buffers.scores, at, buffers.key_tiles, tile.query, keys, turn.next_keys(turn.ahead));
    const Block part = {turn.listed.begin + at, {keys.begin - at, keys.end - at}};
    if constexpr (kMaskRank > 0) load_masks<kPartKeys>(turn.panel, tile, buffers.masks, buffers.rows, part);
    const Numbers numbers = find_largest(turn.panel, tile, buffers, part, kSlack);
    if (kMaskRank > 0 && buffers.nonfinite) note_seen(buffers, at, part.keys);
    if (numbers.raised) {
        add_values(turn, pending);
        if (!tile.fresh) rescale_sums(tile.sums, buffers.rescale);
        pending.begin = keys.begin;
    }
    pending.end = keys.end;
    const vf<kLanes> factor(numbers.factor);
    exponentiate_tile(tile, buffers, [&](float* scores, vf<kLanes> shift, vf<kLanes> sum) {
        hide_padding(scores, part.keys);
        u32* pairs = buffers.probabilities + at / 2 * kPairStride + (scores - buffers.scores);
        return exponentiate_rows(pairs, scores, part.keys, factor, shift, sum,
                                 turn.next_keys(turn.ahead).fetch_pairs(at));
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

/// The block at `begin` is listed already, unless it is the panel's first. The last tile, which sees the next block if
/// any does, fetches it; after the last block comes the next head's first.
KVJIT_NOINLINE void attend_block(const Panel& panel, TileRegisters& registers, Buffers& buffers, i64 begin,
                                 KeyRange seen) {
    const i64 number = begin / kBlockKeys, after = begin + kBlockKeys;
    ListedBlock& listed = buffers.blocks[number % 2];
    ListedBlock& next = buffers.blocks[(number + 1) % 2];
    if (begin <= seen.begin) list_block(panel, listed, {begin, part_from(begin, kBlockKeys, seen)});
    const bool turns = !kFetchesByLine && after >= seen.end && panel.head + 1 < panel.item.head_end;
    const i64 next_begin = turns ? seen.begin / kBlockKeys * kBlockKeys : after;
    const i64 next_head = turns ? panel.head + 1 : panel.head;
    list_block(panel, next, {next_begin, part_from(next_begin, kBlockKeys, seen)});
    pack_block(panel, buffers, listed, {next.value_rows, next_head, next.keys});
#pragma clang loop unroll(disable)
    for (i64 t = 0; t < panel.tiles; ++t) {
        const KeyRange ahead = t + 1 == panel.tiles ? next.keys : KeyRange{};
        attend_keys({panel, registers, buffers.tiles[t], buffers, listed, next, next_head, ahead});
    }
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
