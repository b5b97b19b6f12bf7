// Attention by dot products in float32, for inputs or caches of float32, and for one query head per kv head.
#pragma once

#include "common/score.h"
#include "cuda/attend_dot_tile.h"
#include "cuda/attend_work.h"

namespace kvjit {

template <bool kDecode>
struct alignas(16) DotShared {
    using Shape = DotShape<kDecode>;
    static constexpr int kTilesBytes = Shape::kTeams * 2 * Shape::kTileBytes;
    static constexpr int kMergeBytes = kDecode ? dot_merge_bytes(kFormat) : 0;

    float query[Shape::kTileRows * kHeadDim];  // in the end a prefill's sums of values
    float probabilities[kAttendWarps][Shape::kWarpRows * Shape::kKeys];
    alignas(16) char tiles[kTilesBytes > kMergeBytes ? kTilesBytes : kMergeBytes];  // of keys, of values, for each team

    KVJIT_INLINE char* team_tiles() { return tiles + (kDecode ? warp_index() : 0) * 2 * Shape::kTileBytes; }
};

/// The rows of one warp: `count` packed ones from `first` on, maybe none. What concerns row first + l lies with lane l.
struct WarpRows {
    i64 first;
    i32 count;
    i32 most_visible;  // keys that some row sees
    i32 visible;       // keys that the lane's row sees, 0 if it has none
    i32 position;      // of its query among the keys
    float slope;
    Running running;
};

// ---- 3. Load Q -----------------------------------------------------------------------------------------------------

template <bool kDecode>
KVJIT_INLINE WarpRows rows_of_warp(const AttendWork& work) {
    using Shape = DotShape<kDecode>;
    WarpRows rows = {work.row_begin + (kDecode ? 0 : warp_index() * Shape::kWarpRows), 0, 0, 0, 0, 0.0f, {}};
    const i64 rest = work.row_end - rows.first;
    if (rest <= 0) return rows;
    rows.count = static_cast<i32>(rest < Shape::kWarpRows ? rest : Shape::kWarpRows);
    rows.most_visible = static_cast<i32>(visible_keys_of(work, rows.first + rows.count - 1));
    if (lane_index() < rows.count) {
        const i64 row = rows.first + lane_index();
        rows.visible = static_cast<i32>(visible_keys_of(work, row));
        rows.position = static_cast<i32>(query_position(work.sequence, work.token(row)));
        rows.slope = alibi_slope(work.args, work.head(row));
    }
    return rows;
}

/// The tile's query rows as float32; zeros behind the last, for which probabilities are 0 too: what goes in steps of
/// rows works with some of them. The block does it together.
template <bool kDecode>
KVJIT_INLINE void load_queries(const AttendWork& work, DotShared<kDecode>& shared) {
    using Shape = DotShape<kDecode>;
    for (i32 r = warp_index(); r < Shape::kTileRows; r += kAttendWarps) {
        RowLanes row;
        clear_lanes(row);
        if (work.row_begin + r < work.row_end) add_weighted(row, query_row(work, work.row_begin + r), 1.0f);
        store_lanes(shared.query + r * kHeadDim, row);
    }
    float* probabilities = shared.probabilities[warp_index()];
    for (i32 i = lane_index(); i < Shape::kWarpRows * Shape::kKeys; i += kWarpSize) probabilities[i] = 0.0f;
    barrier();
}

// ---- 4. Per key tile: scores, mask, online softmax, PV
// ---------------------------------------------------------------

/// Sum, or another function of two, over the lanes that have different keys.
template <bool kDecode, class F>
KVJIT_INLINE float over_keys(float v, F&& f) {
#pragma unroll
    for (i32 mask = 1; mask < DotShape<kDecode>::kKeys; mask *= 2) v = f(v, shuffle_xor(v, mask));
    return v;
}

/// q·k of the tile's keys with the warp's rows, to be found at scores[row * kKeys + key].
template <bool kDecode>
KVJIT_INLINE void score_tile(float* scores, const float* query, const WarpRows& rows, const char* tile) {
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
    warp_barrier();
}

/// The score of row r and the lane's key, which is number `key` of the sequence; -inf if hidden.
KVJIT_INLINE float modify_lane(const AttendWork& work, const WarpRows& rows, i32 r, i32 key, float dot) {
    const i32 visible = shuffle(rows.visible, r), position = shuffle(rows.position, r);
    const float slope = kAlibi ? shuffle(rows.slope, r) : 0.0f;
    float mask = 0.0f;
    if constexpr (kMaskRank > 0) {
        const i64 row = rows.first + r;
        const T1* at = mask_row(work.args, work.sequence, work.head(row), work.token(row), key);
        if (key < visible) mask = load_one(at);
    }
    const float score = modify_score(dot, work.args.softmax_scale, mask, slope, static_cast<float>(key - position));
    return key < visible ? apply_hiding(score, mask) : -kInfinity;
}

/// What a tile's softmax leaves to the sums of values: a factor for what the lane's row has summed so far, and which
/// keys (a bit each) some row sees, where masks hide keys.
struct Rescale {
    float factor;
    u32 seen;
};

/// Online softmax over the tile whose first key is `first`: scores, of each row and key, become probabilities.
template <bool kDecode>
KVJIT_INLINE Rescale softmax_tile(const AttendWork& work, WarpRows& rows, float* scores, i32 first) {
    using Shape = DotShape<kDecode>;
    const i32 key = lane_index() % Shape::kKeys;
    float factor = 1.0f;
    bool seen = false;
#pragma unroll 1
    for (i32 r = 0; r < rows.count; ++r) {
        float& place = scores[r * Shape::kKeys + key];
        const float score = modify_lane(work, rows, r, first + key, place);
        const float before = shuffle(rows.running.max, r);
        const float max = max_nan(before, over_keys<kDecode>(score, [](float a, float b) { return max_nan(a, b); }));
        const float shift = max == -kInfinity ? 0.0f : max;
        const float probability = exp(score - shift), keep = exp(before - shift);
        const float sum = over_keys<kDecode>(probability, [](float a, float b) { return a + b; });
        if constexpr (Shape::kLanesPerKey > 1) warp_barrier();
        if (lane_index() < Shape::kKeys) place = probability;
        if (lane_index() == r) {
            rows.running = {max, fma(rows.running.sum, keep, sum)};
            factor = keep;
        }
        seen |= !(score == -kInfinity);
    }
    warp_barrier();
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

template <bool kDecode>
KVJIT_INLINE void team_barrier() {
    if constexpr (kDecode)
        warp_barrier();
    else
        barrier();
}

/// What a half step works on: a tile of keys, or the values of the same keys.
enum Half : i32 { kKeysHalf, kValuesHalf };

/// Begins to copy the tile of one half to its place in the team's shared memory.
template <bool kDecode>
KVJIT_INLINE void copy_half(const AttendWork& work, char* tiles, Half half, const KeySlot& slot) {
    const abi::Cache& cache = work.args.cache;
    const bool values = half == kValuesHalf;
    copy_tile<kDecode>(work, values ? cache.value : cache.key, values ? cache.value_scale : cache.key_scale,
                       tiles + half * DotShape<kDecode>::kTileBytes, slot);
}

/// The first key of the team's first tile. Decode's warps take tiles in turn by their absolute numbers.
template <bool kDecode>
KVJIT_INLINE i64 first_key(const AttendWork& work) {
    if constexpr (!kDecode) return work.key_begin;
    constexpr i32 kKeys = DotShape<kDecode>::kKeys;
    const i32 turn = static_cast<i32>(work.key_begin / kKeys) % kAttendWarps;
    return work.key_begin + (warp_index() - turn + kAttendWarps) % kAttendWarps * kKeys;
}

/// All tiles of the team, in half steps: while one half is worked on, the next is on its way.
template <bool kDecode, int kRows>
KVJIT_INLINE void attend_tiles(const AttendWork& work, DotShared<kDecode>& shared, const float* query, WarpRows& rows,
                               RowLanes (&acc)[kRows]) {
    using Shape = DotShape<kDecode>;
    constexpr i64 kStride = Shape::kTeams * Shape::kKeys;
    char* tiles = shared.team_tiles();
    float* scores = shared.probabilities[warp_index()];
    i64 first = first_key<kDecode>(work);
    KeySlot slot = slot_of_lane<kDecode>(work, first);  // of what is copied next
    Rescale change = {1.0f, 0};
    copy_half<kDecode>(work, tiles, kKeysHalf, slot);
#pragma unroll 1
    for (Half half = kKeysHalf; first < work.key_end; half = half == kKeysHalf ? kValuesHalf : kKeysHalf) {
        const i64 seen = rows.most_visible - first;
        copy_half<kDecode>(work, tiles, half == kKeysHalf ? kValuesHalf : kKeysHalf, slot);
        if (half == kKeysHalf) slot = slot_of_lane<kDecode>(work, first + kStride);
        wait_copies<1>();
        team_barrier<kDecode>();
        if (half == kKeysHalf && seen > 0) {
            score_tile<kDecode>(scores, query, rows, tiles);
            change = softmax_tile<kDecode>(work, rows, scores, static_cast<i32>(first));
        } else if (seen > 0) {
            rescale(acc, change.factor);
            add_values<kDecode>(acc, scores, rows.count, tiles + Shape::kTileBytes,
                                static_cast<i32>(seen < Shape::kKeys ? seen : Shape::kKeys), change.seen);
        }
        team_barrier<kDecode>();
        if (half == kValuesHalf) first += kStride;
    }
}

// ---- 5. Merge ------------------------------------------------------------------------------------------------------

/// What the warps of a decode block found for kDotMergeRows rows.
struct DotMerge {
    float acc[kAttendWarps][kDotMergeRows][kHeadDim];
    Running running[kAttendWarps][kDotMergeRows];
};

/// All warps have the same rows and other keys: a few rows at a time go through shared memory, a row for each warp.
template <int kRows>
KVJIT_INLINE void merge_warps(const AttendWork& work, DotMerge& merge, const WarpRows& rows,
                              const RowLanes (&acc)[kRows]) {
    static_assert(kDotMergeRows == kAttendWarps);
#pragma unroll 1
    for (i32 first = 0; first < rows.count; first += kDotMergeRows) {
        barrier();
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            if (r / kDotMergeRows * kDotMergeRows == first)
                store_lanes(merge.acc[warp_index()][r % kDotMergeRows], acc[r]);
        }
        const i32 own = lane_index() - first;
        if (own >= 0 && own < kDotMergeRows) merge.running[warp_index()][own] = rows.running;
        barrier();
        const i32 row = warp_index();
        if (first + row >= rows.count) continue;
        RowLanes merged;
        const Running running = merge_parts(
            merged, kAttendWarps, [&](i64 warp) { return merge.running[warp][row]; },
            [&](i64 warp) { return static_cast<const float*>(merge.acc[warp][row]); });
        emit_row(work, work.row_begin + first + row, merged, running);
    }
}

/// The warp's rows are its own: they pass through the shared memory of their queries, because registers have no index.
template <int kRows>
KVJIT_INLINE void emit_rows(const AttendWork& work, float* query, const WarpRows& rows, const RowLanes (&acc)[kRows]) {
    warp_barrier();
#pragma unroll
    for (int r = 0; r < kRows; ++r) store_lanes(query + r * kHeadDim, acc[r]);
#pragma unroll 1
    for (i32 r = 0; r < rows.count; ++r) {
        RowLanes row;
        clear_lanes(row);
        add_weighted(row, query + r * kHeadDim, 1.0f);
        emit_row(work, rows.first + r, row, {shuffle(rows.running.max, r), shuffle(rows.running.sum, r)});
    }
}

/// Attention of the work's rows over its keys. The block calls it together.
template <bool kDecode>
KVJIT_INLINE void attend_dot(const AttendWork& work) {
    using Shape = DotShape<kDecode>;
    static_assert(sizeof(DotShared<kDecode>) == dot_shared_bytes(kDecode, kFormat));
    static_assert(sizeof(DotMerge) == dot_merge_bytes(kFormat));
    auto& shared = shared_memory<DotShared<kDecode>>();
    load_queries(work, shared);
    WarpRows rows = rows_of_warp<kDecode>(work);
    float* query = shared.query + (kDecode ? 0 : warp_index() * Shape::kWarpRows * kHeadDim);
    RowLanes acc[Shape::kWarpRows];
#pragma unroll
    for (int r = 0; r < Shape::kWarpRows; ++r) clear_lanes(acc[r]);
    attend_tiles<kDecode>(work, shared, query, rows, acc);
    if constexpr (kDecode)
        merge_warps(work, *reinterpret_cast<DotMerge*>(shared.tiles), rows, acc);
    else
        emit_rows(work, query, rows, acc);
}

}  // namespace kvjit
