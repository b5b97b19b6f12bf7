// attend, for few query rows: bound by reading keys and values, which happens once for all rows of a kv head
// (docs/semantics.md, section 3).
#include "common/abi.h"
#include "common/spec_block.h"
#include "common/score.h"
#include "common/slots.h"
#include "cpu/attend_emit.h"
#include "cpu/attend_tile.h"

namespace kvjit {

// ---- 1. Contract ---------------------------------------------------------------------------------------------------

static_assert(kHeadDim % 8 == 0 && kGroup >= 1 && kRows <= kMaxRows);
static_assert(kChunkKeys % kLanes == 0 && kChunkKeys % kKeys == 0);
static_assert(!kQuantised || kHeadDim % kQuantGroup == 0);

// ---- 2. Work split: a panel of tiles passes over the keys together --------------------------------------------------

inline constexpr int kPanelTiles = 32 / kRows;
inline constexpr int kPanelRows = kPanelTiles * kRows;
/// Positions whose values are summed before the next tile's turn: few where the heads of a token are neighbours, so that
/// memory is read in its order.
inline constexpr int kValueBlock = kHeadInner ? 16 : 64;

/// Tiles tile_begin..tile_end-1 of each of `heads` kv heads. Tile x of a head is part x % kTilesPerToken of the heads of
/// the item's token x / kTilesPerToken. All tiles of a token see the same keys.
struct Panel {
    const abi::AttendArgs& args;
    const abi::AttendItem& item;
    CallSequence sequence;
    i64 head_begin, heads;
    i64 tile_begin, tile_end;

    i64 token(i64 tile) const { return item.row_begin + tile / kTilesPerToken; }
    i64 visible(i64 tile) const { return visible_keys(sequence, token(tile)); }
    /// Row of the buffers where the tile of a kv head begins.
    i64 row(i64 head, i64 tile) const {
        return ((head - head_begin) * (tile_end - tile_begin) + tile - tile_begin) * kRows;
    }
};

struct alignas(64) Buffers {
    float query[kPanelRows * kPadDim];
    float scores[kPanelRows * kScoreStride];  // then probabilities
    float part[kPanelRows * kPadDim];
    float acc[kPanelRows * kPadDim];
    float max[kPanelRows], sum[kPanelRows];
    Running running[kPanelRows];
    ChunkRows rows;
};

/// f(kv head, tile, row of the buffers), for each tile.
template <class F>
KVJIT_INLINE void for_each_tile(const Panel& panel, F&& f) {
#pragma clang loop unroll(disable)
    for (i64 head = panel.head_begin; head < panel.head_begin + panel.heads; ++head)
#pragma clang loop unroll(disable)
        for (i64 tile = panel.tile_begin; tile < panel.tile_end; ++tile) f(head, tile, panel.row(head, tile));
}

/// f(new token, query head, row of the buffers), for each query row. What pads the last tile of a token repeats its last
/// head: it computes, and writes, the same once more.
template <class F>
KVJIT_INLINE void for_each_row(const Panel& panel, F&& f) {
    for_each_tile(panel, [&](i64 head, i64 tile, i64 row) {
        const i64 first = tile % kTilesPerToken * kRows;
#pragma clang loop unroll(disable)
        for (i64 r = 0; r < kRows; ++r)
            f(panel.token(tile), head * kGroup + smaller(first + r, kGroup - 1), row + r);
    });
}

// ---- 3. Load Q -----------------------------------------------------------------------------------------------------

KVJIT_INLINE void load_queries(const Panel& panel, Buffers& buffers) {
    const i64 rows = panel.row(panel.head_begin + panel.heads, panel.tile_begin);
    clear(buffers.acc, rows * kPadDim);
    const abi::Rows& query = panel.args.query;
    for_each_row(panel, [&](i64 i, i64 head, i64 row) {
        const i64 token = panel.sequence.query_begin + i;
        const char* from = query.base + token * query.token_stride + head * query.head_stride;
        widen_row(buffers.query + row * kPadDim, reinterpret_cast<const T1*>(from));
        buffers.running[row] = Running{};
    });
}

// ---- 4. Per chunk: scores, mask, softmax, PV -----------------------------------------------------------------------

KVJIT_INLINE void score_chunk(const Panel& panel, Buffers& buffers, i64 count) {
#pragma clang loop unroll(disable)
    for (i64 t = 0; t < count; t += kKeys) {
#pragma clang loop unroll(disable)
        for (int k = 0; k < kKeys; ++k) ask_for(buffers.rows, t + k + kAhead, panel.head_begin, panel.heads);
        for_each_tile(panel, [&](i64 head, i64, i64 row) {
            score_keys(buffers.scores + row * kScoreStride + t, buffers.query + row * kPadDim, buffers.rows, t, head);
        });
    }
}

template <int... I>
KVJIT_INLINE vf<kLanes> lane_numbers(Sequence<int, I...>) {
    return vf<kLanes>{I...};
}

/// Dot products become scores, -inf from `count` on. Returns the largest.
KVJIT_INLINE float modify_row(const Panel& panel, float* scores, i64 i, i64 head, i64 begin, i64 count) {
    const T1* mask = kMaskRank > 0 ? mask_row(panel.args, panel.sequence, head, i, begin) : nullptr;
    const vf<kLanes> scale(panel.args.softmax_scale);
    const vf<kLanes> slope(alibi_slope(panel.args, head));
    const float first = static_cast<float>(begin - query_position(panel.sequence, i));
    vf<kLanes> largest(-kInfinity);
#pragma clang loop unroll(disable)
    for (i64 t = 0; t < count; t += kLanes) {
        const vf<kLanes> bias = load_mask(mask, t, count);
        const vf<kLanes> number = lane_numbers(Lanes<kLanes>{}) + static_cast<float>(t);
        vf<kLanes> score = modify_score(load<kLanes>(scores + t), scale, bias, slope, number + first);
        score = number < static_cast<float>(count) ? apply_hiding(score, bias) : vf<kLanes>(-kInfinity);
        store<kLanes>(scores + t, score);
        largest = max_fast(score, largest);
    }
    return max_of<kLanes>(largest);
}

/// Scores become probabilities, not yet divided by their sum, which is returned.
KVJIT_INLINE float exponentiate_row(float* scores, float max, i64 count) {
    const vf<kLanes> shift(max == -kInfinity ? 0.0f : max);
    vf<kLanes> sum(0.0f);
#pragma clang loop unroll(disable)
    for (i64 t = 0; t < count; t += kLanes) {
        const vf<kLanes> score = load<kLanes>(scores + t);
        const vf<kLanes> probability = exp<kLanes>(score - shift);
        sum += probability;
        store<kLanes>(scores + t, mark_hidden<kLanes>(probability, score));
    }
    return sum_of<kLanes>(sum);
}

KVJIT_INLINE i64 keys_in_chunk(i64 visible, i64 begin) {
    const i64 keys = visible - begin;
    return keys < 0 ? 0 : keys < kChunkKeys ? keys : kChunkKeys;
}

KVJIT_INLINE void softmax_chunk(const Panel& panel, Buffers& buffers, i64 begin) {
    for_each_row(panel, [&](i64 i, i64 head, i64 row) {
        float* scores = buffers.scores + row * kScoreStride;
        const i64 count = keys_in_chunk(visible_keys(panel.sequence, i), begin);
        const float max = modify_row(panel, scores, i, head, begin, count);
        buffers.sum[row] = exponentiate_row(scores, max, count);
        buffers.max[row] = part_max(max, buffers.sum[row]);
    });
}

KVJIT_INLINE void sum_values(const Panel& panel, Buffers& buffers, i64 begin, i64 count) {
#pragma clang loop unroll(disable)
    for (i64 t = 0; t < count; t += kValueBlock) {
        for_each_tile(panel, [&](i64 head, i64 tile, i64 row) {
            const i64 visible = keys_in_chunk(panel.visible(tile), begin);
            const i64 end = t + kValueBlock < visible ? t + kValueBlock : visible;
            add_values(buffers.part + row * kPadDim, buffers.scores + row * kScoreStride, buffers.rows, t, end, head,
                       tile == panel.tile_begin);
        });
    }
}

/// The parts of chunk c that start at key `begin`, for all rows of the panel.
KVJIT_INLINE void attend_chunk(const Panel& panel, Buffers& buffers, i64 begin, i64 count) {
    const abi::Cache& cache = panel.args.cache;
    const Index* table = table_row(panel.args.table, panel.item.sequence);
    clear(buffers.part, panel.row(panel.head_begin + panel.heads, panel.tile_begin) * kPadDim);
    if (count > 0) {
        list_rows(buffers.rows, cache.key, cache.key_scale, table, begin, begin + count);
        score_chunk(panel, buffers, count);
    }
    softmax_chunk(panel, buffers, begin);
    if (count > 0) {
        list_rows(buffers.rows, cache.value, cache.value_scale, table, begin, begin + count);
        sum_values(panel, buffers, begin, count);
    }
}

KVJIT_INLINE void attend_panel(const Panel& panel, Buffers& buffers) {
    const abi::AttendItem& item = panel.item;
    load_queries(panel, buffers);
#pragma clang loop unroll(disable)
    for (i64 c = item.chunk_begin; c < item.chunk_end; ++c) {
        const i64 begin = c * kChunkKeys;
        attend_chunk(panel, buffers, begin, keys_in_chunk(panel.visible(panel.tile_end - 1), begin));
        for_each_row(panel, [&](i64 i, i64 head, i64 row) {
            const Part part = {buffers.part + row * kPadDim, buffers.max[row], buffers.sum[row]};
            keep_part(panel.args, item, c, i, head, part, buffers.acc + row * kPadDim, buffers.running[row]);
        });
    }
    if (item.partial >= 0) return;
    for_each_row(panel, [&](i64 i, i64 head, i64 row) {
        write_output(panel.args, panel.sequence, i, head, buffers.acc + row * kPadDim, buffers.running[row]);
    });
}

KVJIT_INLINE void attend_item(const abi::AttendArgs& args, const abi::AttendItem& item) {
    const i64 tiles = (item.row_end - item.row_begin) * kTilesPerToken;
    if (tiles == 0) return;
    const i64 heads = kHeadInner && tiles < kPanelTiles ? kPanelTiles / tiles : 1;
    Buffers buffers;
    Panel panel = {args, item, sequence_of(args, item.sequence), 0, 0, 0, 0};
#pragma clang loop unroll(disable)
    for (i64 head = item.head_begin; head < item.head_end; head += heads) {
#pragma clang loop unroll(disable)
        for (i64 tile = 0; tile < tiles; tile += kPanelTiles) {
            panel.head_begin = head;
            panel.heads = smaller(heads, item.head_end - head);
            panel.tile_begin = tile;
            panel.tile_end = smaller(tile + kPanelTiles, tiles);
            attend_panel(panel, buffers);
        }
    }
}

}  // namespace kvjit

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

extern "C" void kvjit_attend_decode(const kvjit::abi::AttendArgs* args, const kvjit::abi::AttendItem* item) {
    kvjit::attend_item(*args, *item);
}
