// Attention by dot products: the rows of one warp, their scores and online softmax.
#pragma once

#include "common/score.h"
#include "cuda/attend/dot/tile.h"
#include "cuda/attend/work.h"

namespace kvjit {

/// The rows of one warp: `count` packed rows from `first` on, maybe none. Lane l has the fields of row first + l.
struct WarpRows {
    i64 first;
    i32 count;
    KeyRange seen_by_some;
    ShortRange seen;  // by the lane's row; empty if it has none
    i32 position;     // of its query among the keys
    float slope;
    Running running;
};

// ---- Queries -------------------------------------------------------------------------------------------------------

template <bool kDecode>
KVJIT_INLINE WarpRows rows_of_warp(const AttendWork& work) {
    using Shape = DotShape<kDecode>;
    WarpRows rows = {work.row_begin + (kDecode ? 0 : warp_index() * Shape::kWarpRows), 0, {}, {}, 0, 0.0f, no_key()};
    const i64 rest = work.row_end - rows.first;
    if (rest <= 0) return rows;
    rows.count = static_cast<i32>(rest < Shape::kWarpRows ? rest : Shape::kWarpRows);
    rows.seen_by_some = seen_by_rows(work.sequence, rows.first, rows.first + rows.count);
    if (lane_index() < rows.count) {
        const i64 row = rows.first + lane_index();
        rows.seen = short_range(work.seen_by(row));
        rows.position = static_cast<i32>(query_position(work.sequence, work.token(row)));
        rows.slope = alibi_slope(work.args, work.head(row));
    }
    return rows;
}

// ---- Scores, mask, online softmax, PV ------------------------------------------------------------------------------

/// Folds v with f, such as a sum, over the lanes that have different keys.
template <bool kDecode, class F>
KVJIT_INLINE float over_keys(float v, F&& f) {
#pragma unroll
    for (i32 mask = 1; mask < DotShape<kDecode>::kKeys; mask *= 2) v = f(v, shuffle_xor(v, mask));
    return v;
}

/// scores[row * kKeys + key] = q·k of the warp's rows and the tile's keys.
template <bool kDecode>
KVJIT_INLINE void score_tile(float* scores, const DotRow* query, const WarpRows& rows, const char* tile) {
    using Shape = DotShape<kDecode>;
    float dot[Shape::kWarpRows];
    multiply_keys<kDecode>(dot, query, rows.count, tile);
#pragma unroll
    for (int r = 0; r < Shape::kWarpRows; ++r) {
        if (r >= rows.count) continue;
#pragma unroll
        for (i32 mask = Shape::kKeys; mask < kWarpSize; mask *= 2) dot[r] += shuffle_xor(dot[r], mask);
        if (lane_index() < Shape::kKeys) scores[r * Shape::kKeys + lane_index()] = dot[r];
    }
    if constexpr (Shape::kLanesPerKey > 1) warp_barrier();
}

/// The score of row r and the lane's key, which is number `key` of the sequence; -inf if hidden.
KVJIT_INLINE float modify_lane(const AttendWork& work, const WarpRows& rows, const ScoreTerms<float>& rule, i32 r,
                               i32 key, float dot) {
    const ShortRange range = {kWindow ? shuffle(rows.seen.begin, r) : 0, shuffle(rows.seen.end, r)};
    const i32 position = shuffle(rows.position, r);
    const bool seen = range.holds(key);
    const float slope = kAlibi ? shuffle(rows.slope, r) : 0.0f;
    float mask = 0.0f;
    if constexpr (kMaskRank > 0) {
        const i64 row = rows.first + r;
        const T1* at = mask_row(work.args, work.sequence, work.head(row), work.token(row), key);
        if (seen) mask = load_one(at);
    }
    const float score = modify_score(dot, rule, mask, slope, static_cast<float>(key - position));
    return seen ? apply_hiding(score, mask) : -kInfinity;
}

/// What the sums of values need of a tile's softmax: a factor for the running sums of the lane's row and, with masks,
/// a bit for each key that some row sees.
struct Rescale {
    float factor;
    u32 seen;
};

/// Online softmax over the tile whose first key is `first`: turns the scores of each row and key into probabilities.
template <bool kDecode>
KVJIT_INLINE Rescale softmax_tile(const AttendWork& work, WarpRows& rows, float* scores, i32 first) {
    using Shape = DotShape<kDecode>;
    const i32 key = lane_index() % Shape::kKeys;
    const ScoreTerms<float> rule = score_terms<float>(work.args);
    float factor = 1.0f;
    bool seen = false;
#pragma unroll 1
    for (i32 r = 0; r < rows.count; ++r) {
        float& place = scores[r * Shape::kKeys + key];
        const float score = modify_lane(work, rows, rule, r, first + key, place);
        const float before = shuffle(rows.running.max, r);
        const float max = max_nan(before, over_keys<kDecode>(score, [](float a, float b) { return max_nan(a, b); }));
        const float shift = max == -kInfinity ? 0.0f : max;
        const float probability = exp(score - shift), rescale = exp(before - shift);
        const float sum = over_keys<kDecode>(probability, [](float a, float b) { return a + b; });
        if constexpr (Shape::kLanesPerKey > 1) warp_barrier();
        if (lane_index() < Shape::kKeys) place = probability;
        if (lane_index() == r) {
            rows.running = {max, fma(rows.running.sum, rescale, sum)};
            factor = rescale;
        }
        seen |= !(score == -kInfinity);
    }
    return {factor, kMaskRank > 0 ? ballot(seen) : 0};
}

template <int kRows>
KVJIT_INLINE void rescale(RowLanes (&acc)[kRows], float factor) {
    if (ballot(factor != 1.0f) == 0) return;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
        const float own = shuffle(factor, r);
#pragma unroll
        for (int c = 0; c < kLanePairs; ++c) {
            acc[r].pair[c][0] *= own;
            acc[r].pair[c][1] *= own;
        }
    }
}

}  // namespace kvjit
