// attend for many query rows (docs/semantics.md, section 3). Arithmetic bounds it: each block of keys and values is
// dequantised once for all rows of a panel.
#include "common/abi.h"
#include "common/score.h"
#include "common/slots.h"
#include "common/spec_block.h"
#include "cpu/attend/prefill_loops.h"

namespace kvjit {

// ---- 1. Contract ---------------------------------------------------------------------------------------------------

static_assert(kHeadDim % 8 == 0 && kGroup >= 1);
static_assert(!kQuantised || kHeadDim % kQuantGroup == 0);

// ---- 2. Work split: panels of tiles, whose rows are (token, query head) of one kv head, heads inner ----------------

constexpr int panel_tiles() {
    constexpr int kFloats = 32768;  // of queries, and of sums, so that both stay in the second-level cache
    const int tiles = kFloats / (kPadDim * kTileRows);
    const int most = 256 / kTileRows;
    return tiles < 1 ? 1 : tiles < most ? tiles : most;
}
inline constexpr int kPanelTiles = panel_tiles();

struct alignas(64) Tile : TileRows {
    Packed query[kPadFactors * kTileRows];
    float sums[kPadDim * kTileRows];  // of probabilities times values, in this chunk
};

struct alignas(64) Buffers {
    Tile tiles[kPanelTiles];
    ListedBlocks blocks;
    Packed keys[kBlockKeys * kKeyStride];
    Packed values[kBlockKeys / kPackedElements * kValueStride];
    float scores[kBlockKeys * kTileRows];  // then probabilities, or in their place pairs of them
    float masks[kMaskRank > 0 ? kBlockKeys* kTileRows : kLanes];
    float rows[kLanes * (kPadDim > kBlockKeys ? kPadDim : kBlockKeys)];
    float acc[kPanelTiles * kTileRows * kPadDim];
    Running running[kPanelTiles * kTileRows];
    float rescale[kTileRows];
    Step steps[kMaskRank > 0 ? kBlockKeys : 1];

    SumRows sum_rows(i64 t, i64 first) { return lines_to_rows(rows, tiles[t].sums + first); }
};

static_assert(sizeof(Buffers) <= 572 * 1024, "a task's frame takes 600 KiB at most");

// ---- 3. Load Q -----------------------------------------------------------------------------------------------------

/// Whether half a tile has as many sums as hide the latency of FMA.
inline constexpr bool kHalfTiles = kVectorBytes == 64;

/// The lanes that are worked on for so many rows.
constexpr i64 lanes_of(i64 rows) {
    return kHalfTiles && rows <= kTileRows / 2 ? kTileRows / 2 : kTileRows;
}

KVJIT_NOINLINE void load_query_tile(const Panel& panel, Buffers& buffers, i64 t) {
    Packed* rows = reinterpret_cast<Packed*>(buffers.rows);
    Tile& tile = buffers.tiles[t];
    tile.first_row = panel.first_row + t * kTileRows;
    tile.lanes = lanes_of(panel.rows() - tile.first_row);
    load_tile(
        panel, tile, t, [&](i64 lane, const T1* query) { pack_query(rows + lane * kPadFactors, query); },
        [&](i64 r) { rows_to_lines(tile.query + r, rows); });
}

// ---- 4. Per key block: scores, mask, online softmax, PV ------------------------------------------------------------

KVJIT_NOINLINE void pack_block(const Panel& panel, Buffers& buffers, const ListedBlock& block) {
    pack_keys(buffers.keys, {block.key_rows, panel.head, block.keys});
    pack_values(buffers.values, {block.value_rows, panel.head, block.keys});
}

/// Turns numbers into probabilities (panel.h).
KVJIT_INLINE vf<kLanes> exponentiate_rows(float* scores, KeyRange keys, const Softmax& softmax, vf<kLanes> sum) {
#pragma clang loop unroll_count(2)
    for (i64 k = keys.begin; k < keys.end; ++k) {
        const vf<kLanes> number = load<kLanes>(scores + k * kTileRows);
        const vf<kLanes> probability = softmax.probabilities<kPowerDegree>(number);
        sum += probability;
        store<kLanes>(scores + k * kTileRows, mark_hidden<kLanes>(probability, number));
    }
    return sum;
}

/// Online softmax over the block. add_block is to multiply the tile's sums so far by buffers.rescale.
KVJIT_NOINLINE void softmax_block(const Panel& panel, Tile& tile, Buffers& buffers, const Block& block) {
    find_largest(panel, tile, buffers, block, 0);
    exponentiate_tile(panel, tile, buffers, [&](float* scores, const Softmax& softmax, vf<kLanes> sum) {
        return exponentiate_rows(scores, block.keys, softmax, sum);
    });
}

/// Whether the mask shows a key to some of N rows.
template <int N>
KVJIT_INLINE bool is_seen(const float* probabilities, i64 k) {
    const vf<N> line = load<N>(probabilities + k * kTileRows);
    return __builtin_reduce_or(bits_of<N>(line) ^ kHiddenBits) != 0;
}

/// With masks, lists the steps over keys that some of N rows sees, since no other key's value may be read. Without
/// masks all of `keys` are seen.
template <int N>
KVJIT_INLINE SeenKeys list_seen_keys(Step* steps, const float* probabilities, KeyRange keys) {
    if constexpr (kMaskRank == 0) return {keys, nullptr};
    i64 count = 0;
#pragma clang loop unroll(disable)
    for (i64 k = keys.begin / kPackedElements * kPackedElements; k < keys.end; k += kPackedElements) {
        u32 keep = k >= keys.begin && is_seen<N>(probabilities, k) ? kKeepEven : 0;
        if constexpr (kPacksPairs) keep |= k + 1 < keys.end && is_seen<N>(probabilities, k + 1) ? kKeepOdd : 0;
        steps[count] = {k / kPackedElements, keep};
        count += keep != 0;
    }
    return {{0, count}, steps};
}

/// Adds a block's keys that some row of the tile sees, for its N lanes.
template <int N>
KVJIT_INLINE void attend_keys(const Panel& panel, Tile& tile, Buffers& buffers, const Block& block,
                              const BlockAhead& ahead) {
    const KeyRange keys = block.keys;
    score_block<N>(buffers.scores, buffers.keys, tile.query, keys, ahead.keys());
    if constexpr (kMaskRank > 0) load_masks<kBlockKeys>(panel, tile, buffers.masks, buffers.rows, block);
    softmax_block(panel, tile, buffers, block);
    const SeenKeys seen = list_seen_keys<N>(buffers.steps, buffers.scores, keys);
    pack_probabilities(buffers.scores, keys);
    add_block<N>(tile.sums, buffers.scores, buffers.values, buffers.rescale, seen, ahead.values());
}

KVJIT_INLINE void attend_tile(const Panel& panel, Tile& tile, Buffers& buffers, const Block& packed,
                              const BlockAhead& ahead) {
    const KeyRange keys = common_part(packed.keys, part_from(packed.begin, kBlockKeys, tile.seen_by_some));
    if (keys.empty()) return;
    const Block block = {packed.begin, keys};
    if constexpr (kHalfTiles)
        if (tile.lanes < kTileRows) return attend_keys<kTileRows / 2>(panel, tile, buffers, block, ahead);
    attend_keys<kTileRows>(panel, tile, buffers, block, ahead);
}

KVJIT_INLINE void begin_chunk(Tile& tile) {
    clear(tile.sums, kPadDim * kTileRows);
    store<kTileRows>(tile.max, Line(-kInfinity));
    store<kTileRows>(tile.sum, Line(0.0f));
}

/// The last tile, which sees the next block if any does, fetches it.
KVJIT_NOINLINE void attend_block(const Panel& panel, Buffers& buffers, i64 begin, KeyRange seen) {
    const BlockAhead ahead = list_ahead(panel, buffers.blocks, begin, seen);
    const ListedBlock& block = buffers.blocks.at(begin);
    pack_block(panel, buffers, block);
#pragma clang loop unroll(disable)
    for (i64 t = 0; t < panel.tiles; ++t)
        attend_tile(panel, buffers.tiles[t], buffers, block, t + 1 == panel.tiles ? ahead : ahead.without_fetch());
}

KVJIT_INLINE void attend_chunk(const Panel& panel, Buffers& buffers, KeyRange keys) {
#pragma clang loop unroll(disable)
    for (i64 t = 0; t < panel.tiles; ++t) begin_chunk(buffers.tiles[t]);
    const KeyRange seen = seen_by_panel(panel, buffers);
#pragma clang loop unroll(disable)
    for (i64 begin = keys.begin / kBlockKeys * kBlockKeys; begin < keys.end; begin += kBlockKeys)
        attend_block(panel, buffers, begin, seen);
}

// ---- 5. Merge, 6. Store: attend_chunks of panel.h -------------------------------------------------------------------

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

KVJIT_INLINE void attend_panel(const Panel& panel, Buffers& buffers) {
#pragma clang loop unroll(disable)
    for (i64 t = 0; t < panel.tiles; ++t) load_query_tile(panel, buffers, t);
    attend_chunks(panel, buffers, [&](KeyRange keys) { attend_chunk(panel, buffers, keys); });
}

KVJIT_INLINE void attend_item(const abi::AttendArgs& args, const abi::AttendItem& item) {
    Buffers buffers;
    for_each_panel<kPanelTiles>(args, item, [&](const Panel& panel) { attend_panel(panel, buffers); });
}

}  // namespace kvjit

extern "C" void kvjit_attend_prefill(const kvjit::abi::AttendArgs* args, const kvjit::abi::AttendItem* item) {
    kvjit::attend_item(*args, *item);
}
