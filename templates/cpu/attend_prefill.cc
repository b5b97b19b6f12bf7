// attend for many query rows (docs/semantics.md, section 3). Arithmetic bounds it: each block of keys and values is
// dequantised once for all rows of a panel.
#include "common/abi.h"
#include "common/score.h"
#include "common/slots.h"
#include "common/spec_block.h"
#include "cpu/attend/output.h"
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

struct alignas(64) Tile {
    Packed query[kPadFactors * kTileRows];
    float sums[kPadDim * kTileRows];  // of probabilities times values, in this chunk
    float max[kTileRows], sum[kTileRows];
    float slope[kTileRows];
    i32 position[kTileRows];  // of the query among the keys
    i32 seen_begin[kTileRows], seen_end[kTileRows];
    KeyRange seen_by_some, seen_by_all;  // keys that some, and that all rows see
    i64 first_row;
};

struct alignas(64) Buffers {
    Tile tiles[kPanelTiles];
    Packed keys[kBlockKeys * kKeyStride];
    Packed values[kBlockKeys / kPackedElements * kValueStride];
    float scores[kBlockKeys * kTileRows];  // then probabilities, or in their place pairs of them
    float masks[kMaskRank > 0 ? kBlockKeys* kTileRows : kLanes];
    float rows[kLanes * (kPadDim > kBlockKeys ? kPadDim : kBlockKeys)];
    float acc[kPanelTiles * kTileRows * kPadDim];
    Running running[kPanelTiles * kTileRows];
    float rescale[kTileRows];
    Step steps[kMaskRank > 0 ? kBlockKeys : 1];
};

/// A kv head's rows from first_row on, in tiles 0..tiles-1 of the buffers.
struct Panel {
    const abi::AttendArgs& args;
    const abi::AttendItem& item;
    CallSequence sequence;
    i64 head;
    i64 first_row;
    i64 tiles;

    i64 rows() const { return (item.row_end - item.row_begin) * kGroup; }
    i64 token(i64 row) const { return item.row_begin + row / kGroup; }
    i64 query_head(i64 row) const { return head * kGroup + row % kGroup; }
};

// ---- 3. Load Q -----------------------------------------------------------------------------------------------------

/// Loads the row of lane r of the tile. Lanes past the last row repeat it; their results are not written.
KVJIT_INLINE void load_row(const Panel& panel, Tile& tile, Packed* to, i64 r) {
    const i64 row = smaller(tile.first_row + r, panel.rows() - 1);
    const i64 i = panel.token(row), head = panel.query_head(row);
    const abi::Rows& query = panel.args.query;
    const char* from = query.base + (panel.sequence.query_begin + i) * query.token_stride + head * query.head_stride;
    pack_query(to, reinterpret_cast<const T1*>(from));
    tile.slope[r] = alibi_slope(panel.args, head);
    tile.position[r] = static_cast<i32>(query_position(panel.sequence, i));
    const KeyRange seen = visible_keys(panel.sequence, i);
    tile.seen_begin[r] = static_cast<i32>(seen.begin);
    tile.seen_end[r] = static_cast<i32>(seen.end);
}

KVJIT_NOINLINE void load_tile(const Panel& panel, Buffers& buffers, i64 t) {
    Tile& tile = buffers.tiles[t];
    Packed* rows = reinterpret_cast<Packed*>(buffers.rows);
    tile.first_row = panel.first_row + t * kTileRows;
#pragma clang loop unroll(disable)
    for (i64 r = 0; r < kTileRows; r += kLanes) {
#pragma clang loop unroll(disable)
        for (i64 lane = 0; lane < kLanes; ++lane) load_row(panel, tile, rows + lane * kPadFactors, r + lane);
        rows_to_lines(tile.query + r, rows);
    }
    constexpr int kLast = kTileRows - 1;
    const KeyRange first = {tile.seen_begin[0], tile.seen_end[0]};
    const KeyRange last = {tile.seen_begin[kLast], tile.seen_end[kLast]};
    tile.seen_by_some = seen_by_some(first, last);
    tile.seen_by_all = seen_by_all(first, last);
}

KVJIT_INLINE void load_panel(const Panel& panel, Buffers& buffers) {
#pragma clang loop unroll(disable)
    for (i64 t = 0; t < panel.tiles; ++t) load_tile(panel, buffers, t);
#pragma clang loop unroll(disable)
    for (i64 row = 0; row < panel.tiles * kTileRows; ++row) buffers.running[row] = Running{};
}

// ---- 4. Per key block: scores, mask, online softmax, PV ------------------------------------------------------------

/// A block of kBlockKeys keys, and those of them that the panel's rows see.
struct Block {
    i64 begin;      // of the block
    KeyRange keys;  // counted from there
};

KVJIT_NOINLINE void pack_block(const Panel& panel, Buffers& buffers, const Block& block) {
    const abi::Cache& cache = panel.args.cache;
    const TableRow table = table_row(panel.args.table, panel.item.sequence);
    const auto [first, count] = KeyRange{block.keys.begin, block.keys.count()};
    RowList<kBlockKeys> rows;
    const PackedRows packed = {rows, panel.head, block.keys};
    list_rows(rows, first, table, {cache.key, cache.key_scale, block.begin + first, count});
    pack_keys(buffers.keys, packed);
    list_rows(rows, first, table, {cache.value, cache.value_scale, block.begin + first, count});
    pack_values(buffers.values, packed);
}

/// Loads the masks of the tile's rows, a line for each key of the block.
KVJIT_NOINLINE void load_masks(const Panel& panel, const Tile& tile, Buffers& buffers, const Block& block) {
    const i64 first = block.keys.begin / kLanes * kLanes, end = block.keys.end;
#pragma clang loop unroll(disable)
    for (i64 r = 0; r < kTileRows; r += kLanes) {
#pragma clang loop unroll(disable)
        for (i64 lane = 0; lane < kLanes; ++lane) {
            const i64 row = smaller(tile.first_row + r + lane, panel.rows() - 1);
            const T1* mask = mask_row(panel.args, panel.sequence, panel.query_head(row), panel.token(row), block.begin);
#pragma clang loop unroll(disable)
            for (i64 k = first; k < end; k += kLanes)
                store<kLanes>(buffers.rows + lane * kBlockKeys + k, load_mask(mask, k, end));
        }
#pragma clang loop unroll(disable)
        for (i64 k = first; k < end; k += kLanes)
            transpose_square(buffers.masks + k * kTileRows + r, kTileRows, buffers.rows + k, kBlockKeys);
    }
}

/// Turns dot products of kLanes rows from lane r on into scores, -inf where hidden. Returns each row's largest so far.
/// diagonal: some row doesn't see all of the keys.
KVJIT_INLINE vf<kLanes> modify_rows(const Panel& panel, const Tile& tile, Buffers& buffers, i64 r, const Block& block,
                                    bool diagonal) {
    const ScoreTerms<vf<kLanes>> rule = score_terms<vf<kLanes>>(panel.args);
    const vf<kLanes> slope = load<kLanes>(tile.slope + r);
    const vi<kLanes> position = load_raw<i32, kLanes>(tile.position + r);
    const vi<kLanes> seen_begin = load_raw<i32, kLanes>(tile.seen_begin + r);
    const vi<kLanes> seen_end = load_raw<i32, kLanes>(tile.seen_end + r);
    vf<kLanes> largest = load<kLanes>(tile.max + r);
#pragma clang loop unroll(disable)
    for (i64 k = block.keys.begin; k < block.keys.end; ++k) {
        float* at = buffers.scores + k * kTileRows + r;
        const vi<kLanes> key(static_cast<i32>(block.begin + k));
        const vf<kLanes> mask = kMaskRank > 0 ? load<kLanes>(buffers.masks + k * kTileRows + r) : vf<kLanes>(0.0f);
        const vf<kLanes> distance = __builtin_convertvector(key - position, vf<kLanes>);
        vf<kLanes> score = apply_hiding(modify_score(load<kLanes>(at), rule, mask, slope, distance), mask);
        if (diagonal) {
            score = key < seen_end ? score : vf<kLanes>(-kInfinity);
            if constexpr (kWindow) score = key < seen_begin ? vf<kLanes>(-kInfinity) : score;
        }
        store<kLanes>(at, score);
        largest = max_fast(score, largest);
    }
    return largest;
}

/// Turns scores of kLanes rows into probabilities relative to `shift`. Returns `sum` plus these.
KVJIT_INLINE vf<kLanes> exponentiate_rows(float* scores, KeyRange keys, vf<kLanes> shift, vf<kLanes> sum) {
#pragma clang loop unroll_count(2)
    for (i64 k = keys.begin; k < keys.end; ++k) {
        const vf<kLanes> score = load<kLanes>(scores + k * kTileRows);
        const vf<kLanes> probability = exp<kLanes>(score - shift);
        sum += probability;
        store<kLanes>(scores + k * kTileRows, mark_hidden<kLanes>(probability, score));
    }
    return sum;
}

/// Online softmax over the block. add_block is to multiply the tile's sums so far by buffers.rescale.
KVJIT_NOINLINE void softmax_block(const Panel& panel, Tile& tile, Buffers& buffers, const Block& block) {
    const KeyRange keys = block.keys;
    const bool diagonal = !tile.seen_by_all.holds({block.begin + keys.begin, block.begin + keys.end});
#pragma clang loop unroll(disable)
    for (i64 r = 0; r < kTileRows; r += kLanes) {
        const vf<kLanes> largest = modify_rows(panel, tile, buffers, r, block, diagonal);
        const vf<kLanes> shift = largest == -kInfinity ? vf<kLanes>(0.0f) : largest;
        const vf<kLanes> rescale = exp<kLanes>(load<kLanes>(tile.max + r) - shift);
        const vf<kLanes> sum = load<kLanes>(tile.sum + r) * rescale;
        store<kLanes>(tile.max + r, largest);
        store<kLanes>(tile.sum + r, exponentiate_rows(buffers.scores + r, keys, shift, sum));
        store<kLanes>(buffers.rescale + r, rescale);
    }
}

/// Whether the mask shows a key to some row of the tile.
KVJIT_INLINE bool is_seen(const float* probabilities, i64 k) {
    const Line line = load<kTileRows>(probabilities + k * kTileRows);
    return __builtin_reduce_or(bits_of<kTileRows>(line) ^ kHiddenBits) != 0;
}

/// With masks, lists the steps over keys that some row of the tile sees, since no other key's value may be read.
/// Without masks all of `keys` are seen.
KVJIT_INLINE SeenKeys list_seen_keys(Step* steps, const float* probabilities, KeyRange keys) {
    if constexpr (kMaskRank == 0) return {keys, nullptr};
    i64 count = 0;
#pragma clang loop unroll(disable)
    for (i64 k = keys.begin / kPackedElements * kPackedElements; k < keys.end; k += kPackedElements) {
        u32 keep = k >= keys.begin && is_seen(probabilities, k) ? kKeepEven : 0;
        if constexpr (kPacksPairs) keep |= k + 1 < keys.end && is_seen(probabilities, k + 1) ? kKeepOdd : 0;
        steps[count] = {k / kPackedElements, keep};
        count += keep != 0;
    }
    return {{0, count}, steps};
}

KVJIT_INLINE void attend_keys(const Panel& panel, Tile& tile, Buffers& buffers, const Block& packed) {
    const KeyRange keys = common_part(packed.keys, part_from(packed.begin, kBlockKeys, tile.seen_by_some));
    if (keys.empty()) return;
    const Block block = {packed.begin, keys};
    score_block(buffers.scores, buffers.keys, tile.query, keys);
    if constexpr (kMaskRank > 0) load_masks(panel, tile, buffers, block);
    softmax_block(panel, tile, buffers, block);
    const SeenKeys seen = list_seen_keys(buffers.steps, buffers.scores, keys);
    pack_probabilities(buffers.scores, keys);
    add_block(tile.sums, buffers.scores, buffers.values, buffers.rescale, seen);
}

KVJIT_INLINE void begin_chunk(Tile& tile) {
    clear(tile.sums, kPadDim * kTileRows);
    store<kTileRows>(tile.max, Line(-kInfinity));
    store<kTileRows>(tile.sum, Line(0.0f));
}

KVJIT_INLINE void attend_chunk(const Panel& panel, Buffers& buffers, KeyRange keys) {
#pragma clang loop unroll(disable)
    for (i64 t = 0; t < panel.tiles; ++t) begin_chunk(buffers.tiles[t]);
#pragma clang loop unroll(disable)
    for (i64 begin = keys.begin / kBlockKeys * kBlockKeys; begin < keys.end; begin += kBlockKeys) {
        const Block block = {begin, part_from(begin, kBlockKeys, keys)};
        pack_block(panel, buffers, block);
#pragma clang loop unroll(disable)
        for (i64 t = 0; t < panel.tiles; ++t) attend_keys(panel, buffers.tiles[t], buffers, block);
    }
}

// ---- 5. Merge, 6. Store --------------------------------------------------------------------------------------------

/// f(row of the kv head, row of the panel, lane of tile t) for `lanes` lanes from first_lane on, as far as rows exist.
template <class F>
KVJIT_INLINE void for_each_row(const Panel& panel, const Buffers& buffers, i64 t, i64 first_lane, i64 lanes, F&& f) {
    const i64 first = buffers.tiles[t].first_row + first_lane;
#pragma clang loop unroll(disable)
    for (i64 r = 0; r < lanes && first + r < panel.rows(); ++r)
        f(first + r, t * kTileRows + first_lane + r, first_lane + r);
}

KVJIT_NOINLINE void emit_tile(const Panel& panel, Buffers& buffers, i64 c, i64 t) {
    const Tile& tile = buffers.tiles[t];
#pragma clang loop unroll(disable)
    for (i64 first = 0; first < kTileRows; first += kLanes) {
        lines_to_rows(buffers.rows, tile.sums + first);
        for_each_row(panel, buffers, t, first, kLanes, [&](i64 row, i64 at, i64 lane) {
            const float max = part_max(tile.max[lane], tile.sum[lane]);
            const Part part = {buffers.rows + (lane - first) * kPadDim, max, tile.sum[lane]};
            emit_part(panel.args, panel.item, c, panel.token(row), panel.query_head(row), part,
                      buffers.acc + at * kPadDim, buffers.running[at]);
        });
    }
}

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

KVJIT_NOINLINE void attend_panel(const Panel& panel, Buffers& buffers) {
    const abi::AttendItem& item = panel.item;
    load_panel(panel, buffers);
    const KeyRange seen = seen_by_some(buffers.tiles[0].seen_by_some, buffers.tiles[panel.tiles - 1].seen_by_some);
#pragma clang loop unroll(disable)
    for (i64 c = item.chunk_begin; c < item.chunk_end; ++c) {
        attend_chunk(panel, buffers, common_part(seen, {c * abi::kChunk, (c + 1) * abi::kChunk}));
#pragma clang loop unroll(disable)
        for (i64 t = 0; t < panel.tiles; ++t) emit_tile(panel, buffers, c, t);
    }
    if (item.partial >= 0) return;
#pragma clang loop unroll(disable)
    for (i64 t = 0; t < panel.tiles; ++t) {
        for_each_row(panel, buffers, t, 0, kTileRows, [&](i64 row, i64 at, i64) {
            write_output(panel.args, panel.sequence, panel.token(row), panel.query_head(row),
                         buffers.acc + at * kPadDim, buffers.running[at]);
        });
    }
}

KVJIT_INLINE void attend_item(const abi::AttendArgs& args, const abi::AttendItem& item) {
    constexpr i64 kPanelRows = kPanelTiles * kTileRows;
    Buffers buffers;
    Panel panel = {args, item, sequence_of(args, item.sequence), 0, 0, 0};
#pragma clang loop unroll(disable)
    for (panel.head = item.head_begin; panel.head < item.head_end; ++panel.head) {
#pragma clang loop unroll(disable)
        for (panel.first_row = 0; panel.first_row < panel.rows(); panel.first_row += kPanelRows) {
            const i64 rows = smaller(kPanelRows, panel.rows() - panel.first_row);
            panel.tiles = (rows + kTileRows - 1) / kTileRows;
            attend_panel(panel, buffers);
        }
    }
}

}  // namespace kvjit

extern "C" void kvjit_attend_prefill(const kvjit::abi::AttendArgs* args, const kvjit::abi::AttendItem* item) {
    kvjit::attend_item(*args, *item);
}
