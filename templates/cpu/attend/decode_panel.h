// The frame of decode, whatever makes its products: a panel of tiles passes over the keys together. A variant defines
// Products before it includes this file: decode_factors.h shows what that has.
#pragma once

#include "common/abi.h"
#include "common/score.h"
#include "common/slots.h"
#include "cpu/attend/decode_tile.h"
#include "cpu/attend/numbers.h"
#include "cpu/attend/output.h"

namespace kvjit {

static_assert(kHeadDim % 8 == 0 && kGroup >= 1 && kRows >= 1);
static_assert(kChunkKeys % Products::kSoftmaxLanes == 0 && kChunkKeys % Products::kKeys == 0);
static_assert(!kQuantised || kHeadDim % kQuantGroup == 0);

inline constexpr int kPanelTiles = 32 / kRows;
inline constexpr int kPanelRows = kPanelTiles * kRows;

/// Rows whose scores are made together, and those whose values are summed together: a tile's, or those of more tiles of
/// one kv head. These all see the panel's keys: where a row doesn't, its probabilities are 0.
inline constexpr int kScoredRows = Products::kScoredRows, kSummedRows = Products::kSummedRows;
inline constexpr bool kSumsTiles = kSummedRows > kRows;
static_assert(kPanelRows % kScoredRows == 0 && kPanelRows % kSummedRows == 0);

/// One (new token, query head) of the panel. The rows of a tile share token and kv head, so that they see the same
/// keys. Rows that pad a token's last tile repeat its last head: they compute and write the same result again.
struct QueryRow {
    i64 token, head, kv_head;
    KeyRange seen;
    float max, sum;   // of the present chunk
    Running running;  // of the chunks before
};

struct alignas(64) Panel {
    const abi::AttendArgs* args;
    const abi::AttendItem* item;
    CallSequence sequence;
    i64 count;              // rows in use
    KeyRange seen;          // by some row
    i64 first_head, heads;  // kv heads of the rows
    i64 next_head;          // the first one of the item's next panel, -1 if this is its last
    bool foreseen;          // whether what was read before the next chunk has prefetched its first keys
    QueryRow rows[kPanelRows];
    ChunkRows list;  // of the chunk's keys, then of its values
    alignas(64) Products::Query query[kPanelRows / kScoredRows];
    alignas(64) float scores[kPanelRows * kScoreStride];  // then probabilities
    Products::Scratch scratch;                            // of a few keys, then of a block of values
    alignas(64) float part[kPanelRows * kPadDim];         // sums of values over the chunk, in the products' order
    alignas(64) float acc[kPanelRows * kPadDim];          // over the chunks so far
};

// ---- Load Q --------------------------------------------------------------------------------------------------------

/// Loads the rows of the item's tiles from first_tile on; each kv head has `tiles_per_head` tiles.
KVJIT_INLINE void load_queries(Panel& panel, i64 first_tile, i64 tiles_per_head) {
    const abi::Rows& query = panel.args->query;
    panel.seen = {panel.sequence.keys, 0};
#pragma clang loop unroll(disable)
    for (i64 row = 0; row < panel.count; ++row) {
        const i64 tile = first_tile + row / kRows;
        const i64 part = tile % tiles_per_head;
        const i64 token = panel.item->row_begin + part / kTilesPerToken;
        const i64 member = smaller(part % kTilesPerToken * kRows + row % kRows, kGroup - 1);
        const i64 kv_head = panel.item->head_begin + tile / tiles_per_head;
        const i64 head = kv_head * kGroup + member;
        const KeyRange seen = visible_keys(panel.sequence, token);
        panel.rows[row] = {token, head, kv_head, seen, 0.0f, 0.0f, no_key()};
        panel.seen = {smaller(panel.seen.begin, seen.begin), larger(panel.seen.end, seen.end)};
        const i64 at = (panel.sequence.query_begin + token) * query.token_stride + head * query.head_stride;
        Products::load_query(panel.query[row / kScoredRows], row % kScoredRows,
                             reinterpret_cast<const T1*>(query.base + at));
    }
    panel.first_head = panel.rows[0].kv_head;
    panel.heads = panel.rows[panel.count - 1].kv_head - panel.first_head + 1;
}

// ---- Per key chunk: scores, mask, softmax, PV ----------------------------------------------------------------------

/// The part of `seen` in the chunk that begins at key `begin`, counted from there.
KVJIT_INLINE KeyRange in_chunk(KeyRange seen, i64 begin) {
    return part_from(begin, kChunkKeys, seen);
}

/// Lists a chunk's keys or values from place `at` of the list on, padded to whole tiles, and after them the first rows
/// of `next`, what is read next, so that prefetches continue into it. Returns where the listed rows end. For prefetches
/// the last is repeated after them, to kReach rows after the padded ones; before `at`, in its tile, the first.
KVJIT_NOINLINE i64 list_chunk(Panel& panel, i64 at, const Positions& rows, const Positions& next) {
    if (rows.count == 0) return at;
    const TableRow table = table_row(panel.args->table, panel.item->sequence);
    list_rows(panel.list, at, table, rows);
    if constexpr (kWindow) repeat_first(panel.list, at / Products::kKeys * Products::kKeys, at);
    const i64 last = at + rows.count, end = (last + Products::kKeys - 1) / Products::kKeys * Products::kKeys;
    const i64 listed = end + next.count;
    repeat_last(panel.list, last, end);
    list_rows_at(panel.list, end, table, next);  // with another head stride it prefetches other rows: only slower
    repeat_last(panel.list, listed, end + kReach);
    return listed;
}

/// Prefetches the first kAhead of the list's rows at..listed-1, for all kv heads of the panel.
KVJIT_NOINLINE void prefetch_first(const Panel& panel, i64 at, i64 listed) {
#pragma clang loop unroll(disable)
    for (i64 t = at; t < smaller(listed, at + kAhead); ++t) {
#pragma clang loop unroll(disable)
        for (i64 head = 0; head < panel.heads; ++head) prefetch_row(panel.list, t, panel.first_head + head);
    }
}

/// Whether the tile at `row` is the panel's first of its kv head.
KVJIT_INLINE bool is_first_of_head(const Panel& panel, i64 row) {
    return row == 0 || panel.rows[row].kv_head != panel.rows[row - 1].kv_head;
}

KVJIT_NOINLINE void score_chunk(Panel& panel, KeyRange keys) {
#pragma clang loop unroll(disable)
    for (i64 t = keys.begin / Products::kKeys * Products::kKeys; t < keys.end; t += Products::kKeys) {
        prefetch_pages(panel.list, t, Products::kKeys, panel.first_head);
#pragma clang loop unroll(disable)
        for (i64 row = 0; row < panel.count; row += kScoredRows)
            Products::score_keys(panel.scores + row * kScoreStride + t, panel.query[row / kScoredRows], panel.list,
                                 {t, panel.rows[row].kv_head, panel.count - row, is_first_of_head(panel, row)},
                                 panel.scratch);
    }
}

/// Scores of keys, or probabilities, that are worked on together.
inline constexpr int kSoftmaxLanes = Products::kSoftmaxLanes;
using Numbers = vf<kSoftmaxLanes>;

template <int... I>
KVJIT_INLINE Numbers lane_numbers(Sequence<int, I...>) {
    return Numbers{I...};
}

/// First key of the vector that holds the range's first key. Vectors begin at multiples of kSoftmaxLanes wherever the
/// range begins, so that sums have the same bits.
KVJIT_INLINE i64 first_lane(KeyRange keys) {
    return kWindow ? keys.begin / kSoftmaxLanes * kSoftmaxLanes : 0;
}

/// Turns dot products into scores, -inf outside of `keys`. Returns the largest score.
KVJIT_INLINE float modify_row(const Panel& panel, float* scores, const QueryRow& row, i64 begin, KeyRange keys) {
    const T1* mask = kMaskRank > 0 ? mask_row(*panel.args, panel.sequence, row.head, row.token, begin) : nullptr;
    const ScoreTerms<Numbers> rule = score_terms<Numbers>(*panel.args);
    const Numbers slope(alibi_slope(*panel.args, row.head));
    const float first = static_cast<float>(begin - query_position(panel.sequence, row.token));
    Numbers largest(-kInfinity);
#pragma clang loop unroll(disable)
    for (i64 t = first_lane(keys); t < keys.end; t += kSoftmaxLanes) {
        const Numbers bias = load_mask<kSoftmaxLanes>(mask, t, keys.end);
        const Numbers number = lane_numbers(Lanes<kSoftmaxLanes>{}) + static_cast<float>(t);
        Numbers score = modify_score(load<kSoftmaxLanes>(scores + t), rule, bias, slope, number + first);
        score = apply_hiding(score, bias);
        if (t + kSoftmaxLanes > keys.end) score = number < static_cast<float>(keys.end) ? score : Numbers(-kInfinity);
        if (kWindow && t < keys.begin) score = number < static_cast<float>(keys.begin) ? Numbers(-kInfinity) : score;
        store<kSoftmaxLanes>(scores + t, score);
        largest = max_fast(score, largest);
    }
    return max_of<kSoftmaxLanes>(largest);
}

/// Hides what is outside of `keys` in the first and the last vector.
KVJIT_INLINE void hide_edges(float* products, KeyRange keys) {
    const auto hide = [&](i64 t) {
        const Numbers number = lane_numbers(Lanes<kSoftmaxLanes>{}) + static_cast<float>(t);
        Numbers product = load<kSoftmaxLanes>(products + t);
        product = number < static_cast<float>(keys.end) ? product : Numbers(-kInfinity);
        if (kWindow) product = number < static_cast<float>(keys.begin) ? Numbers(-kInfinity) : product;
        store<kSoftmaxLanes>(products + t, product);
    };
    if (keys.empty()) return;
    if (kWindow) hide(first_lane(keys));
    hide((keys.end - 1) / kSoftmaxLanes * kSoftmaxLanes);
}

/// The largest product, -inf outside of `keys`. Several are found side by side, as each waits for the one before it.
KVJIT_INLINE float largest_product(float* products, KeyRange keys) {
    constexpr int kSide = 4;
    hide_edges(products, keys);
    Numbers found[kSide];
#pragma clang loop unroll(full)
    for (int i = 0; i < kSide; ++i) found[i] = Numbers(-kInfinity);
    i64 t = first_lane(keys);
#pragma clang loop unroll(disable)
    for (; t + kSide * kSoftmaxLanes <= keys.end; t += kSide * kSoftmaxLanes) {
#pragma clang loop unroll(full)
        for (int i = 0; i < kSide; ++i)
            found[i] = max_fast(load<kSoftmaxLanes>(products + t + i * kSoftmaxLanes), found[i]);
    }
#pragma clang loop unroll(disable)
    for (; t < keys.end; t += kSoftmaxLanes) found[0] = max_fast(load<kSoftmaxLanes>(products + t), found[0]);
    return max_of<kSoftmaxLanes>(max_fast(max_fast(found[0], found[1]), max_fast(found[2], found[3])));
}

/// The row's largest number; leaves -inf in place of those outside of `keys`.
KVJIT_INLINE float find_largest(const Panel& panel, float* numbers, const QueryRow& row, i64 begin, KeyRange keys) {
    return takes_products(*panel.args) ? largest_product(numbers, keys) : modify_row(panel, numbers, row, begin, keys);
}

/// Turns numbers into probabilities, not yet divided by their sum, which it returns. The difference is taken before it
/// is scaled (panel.h, Softmax). factor: times which numbers are scores.
KVJIT_INLINE float exponentiate_row(float* scores, float max, float factor, KeyRange keys) {
    const Numbers shift(max == -kInfinity ? 0.0f : max), scale(factor * kLog2e);
    Numbers sum(0.0f);
#pragma clang loop unroll(disable)
    for (i64 t = first_lane(keys); t < keys.end; t += kSoftmaxLanes) {
        const Numbers score = load<kSoftmaxLanes>(scores + t);
        const Numbers probability = exp2_short<kSoftmaxLanes, Products::kPowerDegree>((score - shift) * scale);
        sum += probability;
        Products::store_probabilities(scores, t, mark_hidden<kSoftmaxLanes>(probability, score));
    }
    return sum_of<kSoftmaxLanes>(sum);
}

/// Hides the keys of the panel that the row doesn't see. Those of its own vectors have probabilities.
KVJIT_INLINE void clear_others(float* scores, KeyRange keys, KeyRange of_panel) {
    const i64 begin = first_lane(keys);
    const Numbers hidden = mark_hidden<kSoftmaxLanes>(Numbers(0.0f), Numbers(-kInfinity));
#pragma clang loop unroll(disable)
    for (i64 t = first_lane(of_panel); t < of_panel.end; t += kSoftmaxLanes)
        if (t < begin || t >= keys.end) Products::store_probabilities(scores, t, hidden);
}

KVJIT_NOINLINE void softmax_chunk(Panel& panel, i64 begin) {
    const float factor = number_factor(*panel.args);
#pragma clang loop unroll(disable)
    for (i64 at = 0; at < panel.count; ++at) {
        QueryRow& row = panel.rows[at];
        float* scores = panel.scores + at * kScoreStride;
        const KeyRange keys = in_chunk(row.seen, begin);
        const float max = find_largest(panel, scores, row, begin, keys);
        row.sum = exponentiate_row(scores, max, factor, keys);
        if constexpr (kSumsTiles) clear_others(scores, keys, in_chunk(panel.seen, begin));
        row.max = part_max(max * factor, row.sum);
    }
}

/// Keys whose values each tile sums in turn, whole steps of the products.
KVJIT_INLINE i64 value_block(const Panel& panel) {
    constexpr i64 kFew = kFewValues > Products::kKeysTogether ? kFewValues : Products::kKeysTogether;
    static_assert(kFew % Products::kKeysTogether == 0 && kFew <= Products::kValueBlock);
    const bool one_tile_a_head = panel.count == panel.heads * kRows;
    return one_tile_a_head ? kFew : Products::kValueBlock;
}

KVJIT_NOINLINE void sum_values(Panel& panel, i64 begin, KeyRange keys) {
    const i64 first = keys.begin / Products::kKeysTogether * Products::kKeysTogether, step = value_block(panel);
#pragma clang loop unroll(disable)
    for (i64 t = first; t < keys.end; t += step) {
        prefetch_pages(panel.list, t, smaller(step, keys.end - t), panel.first_head);
#pragma clang loop unroll(disable)
        for (i64 row = 0; row < panel.count; row += kSummedRows) {
            const KeyRange seen = kSumsTiles ? keys : in_chunk(panel.rows[row].seen, begin);
            const KeyRange block = common_part(seen, {t, t + step});
            const KeyRange of_head = is_first_of_head(panel, row) ? common_part(keys, {t, t + step}) : KeyRange{};
            Products::add_values(
                panel.part + row * kPadDim, panel.scores + row * kScoreStride, panel.list,
                {block.begin, block.end, panel.rows[row].kv_head, panel.count - row, t == first, of_head},
                panel.scratch);
        }
    }
}

/// What is read after the values of chunk c: keys of the next chunk, or of the next panel's first one, as far as this
/// panel has seen them. They are listed as if the next panel's first head were this one's.
KVJIT_INLINE Positions keys_after(const Panel& panel, i64 c) {
    const abi::Cache& cache = panel.args->cache;
    const bool last = c + 1 == panel.item->chunk_end;
    const i64 begin = (last ? panel.item->chunk_begin : c + 1) * kChunkKeys;
    const KeyRange keys = in_chunk(panel.seen, begin);
    const i64 count = last && panel.next_head < 0 ? 0 : smaller(keys.count(), kReach);
    return {cache.key, cache.key_scale, begin + keys.begin, count, last ? panel.next_head - panel.first_head : 0};
}

KVJIT_INLINE void attend_chunk(Panel& panel, i64 c) {
    const abi::Cache& cache = panel.args->cache;
    const i64 begin = c * kChunkKeys;
    const KeyRange keys = in_chunk(panel.seen, begin);
    const i64 first = begin + keys.begin, count = keys.count();
    const i64 listed = list_chunk(panel, keys.begin, {cache.key, cache.key_scale, first, count},
                                  {cache.value, cache.value_scale, first, smaller(count, kReach)});
    // Fewer than kAhead keys are passed over before all of what comes next is prefetched: their values, and the keys of
    // the chunk after them.
    if (!panel.foreseen || count < kAhead) prefetch_first(panel, keys.begin, listed);
    score_chunk(panel, keys);
    list_chunk(panel, keys.begin, {cache.value, cache.value_scale, first, count}, keys_after(panel, c));
    softmax_chunk(panel, begin);
    sum_values(panel, begin, keys);
    panel.foreseen = count >= kAhead;
}

// ---- Merge, store --------------------------------------------------------------------------------------------------

KVJIT_NOINLINE void emit_parts(Panel& panel, i64 c) {
#pragma clang loop unroll(disable)
    for (i64 at = 0; at < panel.count; ++at) {
        QueryRow& row = panel.rows[at];
        float* acc = panel.part + at * kPadDim;
        Products::finish_sums(
            acc, {panel.scores + at * kScoreStride, panel.list, in_chunk(row.seen, c * kChunkKeys), row.kv_head});
        emit_part(*panel.args, *panel.item, c, row.token, row.head, {acc, row.max, row.sum}, panel.acc + at * kPadDim,
                  row.running);
    }
}

// ---- Items ---------------------------------------------------------------------------------------------------------

KVJIT_NOINLINE void attend_panel(Panel& panel, i64 first_tile, i64 tiles_per_head) {
    load_queries(panel, first_tile, tiles_per_head);
#pragma clang loop unroll(disable)
    for (i64 c = panel.item->chunk_begin; c < panel.item->chunk_end; ++c) {
        attend_chunk(panel, c);
        emit_parts(panel, c);
    }
    if (panel.item->partial >= 0) return;
#pragma clang loop unroll(disable)
    for (i64 at = 0; at < panel.count; ++at) {
        const QueryRow& row = panel.rows[at];
        write_output(*panel.args, panel.sequence, row.token, row.head, panel.acc + at * kPadDim, row.running);
    }
}

KVJIT_INLINE void attend_item(const abi::AttendArgs& args, const abi::AttendItem& item) {
    const i64 tiles_per_head = (item.row_end - item.row_begin) * kTilesPerToken;
    const i64 tiles = (item.head_end - item.head_begin) * tiles_per_head;
    Panel panel;  // not cleared: it is mostly buffers
    panel.args = &args;
    panel.item = &item;
    panel.sequence = sequence_of(args, item.sequence);
    panel.foreseen = false;
    for (i64 tile = 0; tile < tiles;) {
        const i64 rest = kHeadInner ? tiles - tile : tiles_per_head - tile % tiles_per_head;
        panel.count = smaller(rest, kPanelTiles) * kRows;
        const i64 next = tile + panel.count / kRows;
        panel.next_head = next < tiles ? item.head_begin + next / tiles_per_head : -1;
        attend_panel(panel, tile, tiles_per_head);
        tile = next;
    }
}

}  // namespace kvjit
