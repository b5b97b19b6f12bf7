// The frame of prefill, whatever makes its products: a panel is a kv head's rows, (token, query
// head) with heads inner, in tiles of kTileRows. A tile's queries, scores and sums are matrices with a line for each
// element or key, and in it a lane for each row, so that softmax is lane by lane. One row's arithmetic doesn't depend
// on its tile's others.
//
// A variant defines kTileRows, the lanes of a tile's lines, before it includes this file; then its Tile, which derives
// from TileRows, and its Buffers, which has `tiles`, `scores` and `masks` (a line for each key of a block), `rescale`,
// `rows` (to transpose in), `acc` and `running`, and whose sum_rows(t, r) gives sums of tile t as rows.
#pragma once

#include "common/score.h"
#include "cpu/attend/numbers.h"
#include "cpu/attend/output.h"
#include "cpu/attend/rows.h"
#include "cpu/attend/transpose.h"
#include "cpu/machine/math.h"

namespace kvjit {

/// A line of a tile: one number for each of its rows.
using Line = vf<kTileRows>;

/// Softmax of each row in the present chunk, and the keys that it sees.
struct alignas(64) TileRows {
    float max[kTileRows], sum[kTileRows];  // of numbers (numbers.h), and of their probabilities
    float slope[kTileRows];
    i32 position[kTileRows];  // of the query among the keys
    i32 seen_begin[kTileRows], seen_end[kTileRows];
    KeyRange seen_by_some, seen_by_all;  // keys that some, and that all rows see
    i64 first_row;
    i64 lanes;  // that are worked on, from the first on: those that have rows of their own among them
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
    bool is_last_of_head() const { return first_row + tiles * kTileRows >= rows(); }
    i64 token(i64 row) const { return item.row_begin + row / kGroup; }
    i64 query_head(i64 row) const { return head * kGroup + row % kGroup; }
    /// The row of the tile's lane r. Lanes past the last row repeat it; their results are not written.
    i64 row_at(const TileRows& tile, i64 r) const { return smaller(tile.first_row + r, rows() - 1); }
};

/// A block of keys, and those of them that the panel's rows see.
struct Block {
    i64 begin;      // of the block
    KeyRange keys;  // counted from there
};

// ---- Load Q --------------------------------------------------------------------------------------------------------

/// Notes which keys the row of the tile's lane r sees. Returns its query.
KVJIT_INLINE const T1* begin_row(const Panel& panel, TileRows& tile, i64 r) {
    const i64 row = panel.row_at(tile, r);
    const i64 i = panel.token(row), head = panel.query_head(row);
    tile.slope[r] = alibi_slope(panel.args, head);
    tile.position[r] = static_cast<i32>(query_position(panel.sequence, i));
    const KeyRange seen = visible_keys(panel.sequence, i);
    tile.seen_begin[r] = static_cast<i32>(seen.begin);
    tile.seen_end[r] = static_cast<i32>(seen.end);
    const abi::Rows& query = panel.args.query;
    const i64 at = (panel.sequence.query_begin + i) * query.token_stride + head * query.head_stride;
    return reinterpret_cast<const T1*>(query.base + at);
}

/// Fetches the queries of tile t, if there is such a tile: they lie far apart, and one after the other would be waited
/// for.
KVJIT_NOINLINE void fetch_queries(const Panel& panel, i64 t) {
    const abi::Rows& query = panel.args.query;
    const i64 first = panel.first_row + t * kTileRows, end = smaller(first + kTileRows, panel.rows());
#pragma clang loop unroll(disable)
    for (i64 row = first; row < end; ++row) {
        const i64 at = (panel.sequence.query_begin + panel.token(row)) * query.token_stride;
        const char* from = query.base + at + panel.query_head(row) * query.head_stride;
#pragma clang loop unroll(full)
        for (i64 line = 0; line < bytes_of<T1>(kHeadDim); line += 64) prefetch_far(from + line);
    }
}

/// Begins tile t, whose first_row and lanes are set. load(row, lane, query): loads a query into row 0..kLanes-1 of a
/// square; transpose(r): writes these rows into the tile's lanes from r on.
template <class Tile, class Load, class Transpose>
KVJIT_INLINE void load_tile(const Panel& panel, Tile& tile, i64 t, Load&& load, Transpose&& transpose) {
    if (t == 0) fetch_queries(panel, 0);
    fetch_queries(panel, t + 1);
#pragma clang loop unroll(disable)
    for (i64 r = 0; r < tile.lanes; r += kLanes) {
#pragma clang loop unroll(disable)
        for (i64 lane = 0; lane < kLanes; ++lane) load(lane, begin_row(panel, tile, r + lane));
        transpose(r);
    }
    const KeyRange first = {tile.seen_begin[0], tile.seen_end[0]};
    const KeyRange last = {tile.seen_begin[tile.lanes - 1], tile.seen_end[tile.lanes - 1]};
    tile.seen_by_some = seen_by_some(first, last);
    tile.seen_by_all = seen_by_all(first, last);
}

// ---- Scores --------------------------------------------------------------------------------------------------------

/// Loads the masks of the tile's rows, a line for each key of the block. scratch: kLanes * kBlockKeys floats.
template <int kBlockKeys>
KVJIT_NOINLINE void load_masks(const Panel& panel, const TileRows& tile, float* masks, float* scratch,
                               const Block& block) {
    const i64 first = block.keys.begin / kLanes * kLanes, end = block.keys.end;
#pragma clang loop unroll(disable)
    for (i64 r = 0; r < tile.lanes; r += kLanes) {
#pragma clang loop unroll(disable)
        for (i64 lane = 0; lane < kLanes; ++lane) {
            const i64 row = panel.row_at(tile, r + lane);
            const T1* mask = mask_row(panel.args, panel.sequence, panel.query_head(row), panel.token(row), block.begin);
#pragma clang loop unroll(disable)
            for (i64 k = first; k < end; k += kLanes)
                store<kLanes>(scratch + lane * kBlockKeys + k, load_mask(mask, k, end));
        }
#pragma clang loop unroll(disable)
        for (i64 k = first; k < end; k += kLanes)
            transpose_square(masks + k * kTileRows + r, kTileRows, scratch + k, kBlockKeys);
    }
}

/// What scores are taken relative to: the largest, or 0 where a row sees no key so far.
KVJIT_INLINE vf<kLanes> finite_shift(vf<kLanes> largest) {
    return largest == -kInfinity ? vf<kLanes>(0.0f) : largest;
}

/// Whether some row of the tile doesn't see all of the block's keys.
KVJIT_INLINE bool is_diagonal(const TileRows& tile, const Block& block) {
    return !tile.seen_by_all.holds({block.begin + block.keys.begin, block.begin + block.keys.end});
}

/// Turns dot products of kLanes rows from lane r on into numbers, -inf where hidden. Returns each row's largest so far.
/// diagonal: is_diagonal().
KVJIT_INLINE vf<kLanes> modify_rows(const Panel& panel, const TileRows& tile, float* scores, const float* masks, i64 r,
                                    const Block& block, bool diagonal) {
    ScoreTerms<vf<kLanes>> rule = score_terms<vf<kLanes>>(panel.args);
    if (takes_products(panel.args)) rule.scale = vf<kLanes>(1.0f);
    const vf<kLanes> slope = load<kLanes>(tile.slope + r);
    const vi<kLanes> position = load_raw<i32, kLanes>(tile.position + r);
    const vi<kLanes> seen_begin = load_raw<i32, kLanes>(tile.seen_begin + r);
    const vi<kLanes> seen_end = load_raw<i32, kLanes>(tile.seen_end + r);
    vf<kLanes> largest = load<kLanes>(tile.max + r);
#pragma clang loop unroll(disable)
    for (i64 k = block.keys.begin; k < block.keys.end; ++k) {
        float* at = scores + k * kTileRows + r;
        const vi<kLanes> key(static_cast<i32>(block.begin + k));
        const vf<kLanes> mask = kMaskRank > 0 ? load<kLanes>(masks + k * kTileRows + r) : vf<kLanes>(0.0f);
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

/// The largest of kLanes rows' products so far. Several are found side by side, as each waits for the one before it.
KVJIT_INLINE vf<kLanes> largest_products(const float* products, KeyRange keys, vf<kLanes> largest) {
    constexpr int kSide = 4;
    vf<kLanes> found[kSide];
#pragma clang loop unroll(full)
    for (int i = 0; i < kSide; ++i) found[i] = largest;
    i64 k = keys.begin;
#pragma clang loop unroll(disable)
    for (; k + kSide <= keys.end; k += kSide) {
#pragma clang loop unroll(full)
        for (int i = 0; i < kSide; ++i) found[i] = max_fast(load<kLanes>(products + (k + i) * kTileRows), found[i]);
    }
#pragma clang loop unroll(disable)
    for (; k < keys.end; ++k) found[0] = max_fast(load<kLanes>(products + k * kTileRows), found[0]);
    return max_fast(max_fast(found[0], found[1]), max_fast(found[2], found[3]));
}

/// The first pass of softmax over a block. Raises tile.max to each row's largest number so far where that is a score
/// larger by more than `slack`; returns whether it raised some row's. Leaves in `scores` the numbers, and in `rescale`
/// the factors of what the tile has summed so far: 1 for rows that were not raised, 0 or 1 before a first key.
template <class Buffers>
KVJIT_NOINLINE bool find_largest(const Panel& panel, TileRows& tile, Buffers& buffers, const Block& block,
                                 float slack) {
    const vf<kLanes> factor(number_factor(panel.args));
    const bool diagonal = is_diagonal(tile, block), modified = diagonal || !takes_products(panel.args);
    bool raised = false;
#pragma clang loop unroll(disable)
    for (i64 r = 0; r < tile.lanes; r += kLanes) {
        const vf<kLanes> before = load<kLanes>(tile.max + r);
        const vf<kLanes> largest = modified
                                       ? modify_rows(panel, tile, buffers.scores, buffers.masks, r, block, diagonal)
                                       : largest_products(buffers.scores + r, block.keys, before);
        const vi<kLanes> rises = (largest - before) * factor > slack;
        vf<kLanes> rescale(1.0f);
        if (__builtin_reduce_or(rises) != 0) {
            const vf<kLanes> after = rises ? largest : before;
            rescale = exp<kLanes>((before - finite_shift(after)) * factor);
            store<kLanes>(tile.max + r, after);
            raised = true;
        }
        store<kLanes>(buffers.rescale + r, rescale);
    }
    return raised;
}

/// Turns numbers of kLanes rows into probabilities: e^(score - the row's max), 1 where it is tile.max. The difference
/// is taken before it is scaled: scores, once rounded, would be off by up to 2^-24 of themselves.
struct Softmax {
    vf<kLanes> shift, factor;  // factor: times which numbers are scores, for powers of 2

    /// kDegree: as exp2_short takes it.
    template <int kDegree>
    KVJIT_INLINE vf<kLanes> probabilities(vf<kLanes> numbers) const {
        return exp2_short<kLanes, kDegree>((numbers - shift) * factor);
    }
};

/// The second pass: exponentiate(numbers of kLanes rows, softmax, sum) turns numbers into probabilities, and returns
/// `sum` plus these.
template <class Buffers, class F>
KVJIT_INLINE void exponentiate_tile(const Panel& panel, TileRows& tile, Buffers& buffers, F&& exponentiate) {
    const vf<kLanes> factor(number_factor(panel.args) * kLog2e);
#pragma clang loop unroll(disable)
    for (i64 r = 0; r < tile.lanes; r += kLanes) {
        const vf<kLanes> sum = load<kLanes>(tile.sum + r) * load<kLanes>(buffers.rescale + r);
        const Softmax softmax = {finite_shift(load<kLanes>(tile.max + r)), factor};
        store<kLanes>(tile.sum + r, exponentiate(buffers.scores + r, softmax, sum));
    }
}

// ---- Merge, store --------------------------------------------------------------------------------------------------

/// Sums of kLanes rows over a chunk: of the first one, and how far the next one's are.
struct SumRows {
    const float* first;
    i64 stride;
};

/// kLanes lanes of kPadDim lines to kLanes rows of kPadDim floats.
KVJIT_INLINE SumRows lines_to_rows(float* rows, const float* lines) {
#pragma clang loop unroll(disable)
    for (int d = 0; d < kPadDim; d += kLanes) transpose_square(rows + d, kPadDim, lines + d * kTileRows, kTileRows);
    return {rows, kPadDim};
}

/// f(row of the kv head, row of the panel, lane of tile t) for `lanes` lanes from first_lane on, as far as rows exist.
template <class F>
KVJIT_INLINE void for_each_row(const Panel& panel, const TileRows& tile, i64 t, i64 first_lane, i64 lanes, F&& f) {
    const i64 first = tile.first_row + first_lane;
#pragma clang loop unroll(disable)
    for (i64 r = 0; r < lanes && first + r < panel.rows(); ++r)
        f(first + r, t * kTileRows + first_lane + r, first_lane + r);
}

/// Stores the parts of chunk c of tile t, or merges them into the running results.
template <class Buffers>
KVJIT_NOINLINE void emit_tile(const Panel& panel, Buffers& buffers, i64 c, i64 t) {
    const auto& tile = buffers.tiles[t];
#pragma clang loop unroll(disable)
    for (i64 first = 0; first < tile.lanes; first += kLanes) {
        const SumRows sums = buffers.sum_rows(t, first);
        for_each_row(panel, tile, t, first, kLanes, [&](i64 row, i64 at, i64 lane) {
            const float max = part_max(tile.max[lane] * number_factor(panel.args), tile.sum[lane]);
            const Part part = {sums.first + (lane - first) * sums.stride, max, tile.sum[lane]};
            emit_part(panel.args, panel.item, c, panel.token(row), panel.query_head(row), part,
                      buffers.acc + at * kPadDim, buffers.running[at]);
        });
    }
}

/// Writes the outputs of tile t, once all chunks are merged.
template <class Buffers>
KVJIT_INLINE void write_tile(const Panel& panel, const Buffers& buffers, i64 t) {
    for_each_row(panel, buffers.tiles[t], t, 0, kTileRows, [&](i64 row, i64 at, i64) {
        write_output(panel.args, panel.sequence, panel.token(row), panel.query_head(row), buffers.acc + at * kPadDim,
                     buffers.running[at]);
    });
}

// ---- An item's panels ----------------------------------------------------------------------------------------------

/// Keys of the item's chunks that some row of the panel sees.
template <class Buffers>
KVJIT_INLINE KeyRange seen_by_panel(const Panel& panel, const Buffers& buffers) {
    const KeyRange seen = seen_by_some(buffers.tiles[0].seen_by_some, buffers.tiles[panel.tiles - 1].seen_by_some);
    return common_part(seen, {panel.item.chunk_begin * abi::kChunk, panel.item.chunk_end * abi::kChunk});
}

/// attend_chunk(keys) for each of the item's chunks, and what is done with its parts.
template <class Buffers, class F>
KVJIT_NOINLINE void attend_chunks(const Panel& panel, Buffers& buffers, F&& attend_chunk) {
    const abi::AttendItem& item = panel.item;
#pragma clang loop unroll(disable)
    for (i64 row = 0; row < panel.tiles * kTileRows; ++row) buffers.running[row] = no_key();
    const KeyRange seen = seen_by_panel(panel, buffers);
#pragma clang loop unroll(disable)
    for (i64 c = item.chunk_begin; c < item.chunk_end; ++c) {
        attend_chunk(common_part(seen, {c * abi::kChunk, (c + 1) * abi::kChunk}));
#pragma clang loop unroll(disable)
        for (i64 t = 0; t < panel.tiles; ++t) emit_tile(panel, buffers, c, t);
    }
    if (item.partial >= 0) return;
#pragma clang loop unroll(disable)
    for (i64 t = 0; t < panel.tiles; ++t) write_tile(panel, buffers, t);
}

/// f(panel) for each panel of up to kPanelTiles tiles.
template <int kPanelTiles, class F>
KVJIT_INLINE void for_each_panel(const abi::AttendArgs& args, const abi::AttendItem& item, F&& f) {
    constexpr i64 kPanelRows = kPanelTiles * kTileRows;
    Panel panel = {args, item, sequence_of(args, item.sequence), 0, 0, 0};
#pragma clang loop unroll(disable)
    for (panel.head = item.head_begin; panel.head < item.head_end; ++panel.head) {
#pragma clang loop unroll(disable)
        for (panel.first_row = 0; panel.first_row < panel.rows(); panel.first_row += kPanelRows) {
            const i64 rows = smaller(kPanelRows, panel.rows() - panel.first_row);
            panel.tiles = (rows + kTileRows - 1) / kTileRows;
            f(panel);
        }
    }
}

}  // namespace kvjit
