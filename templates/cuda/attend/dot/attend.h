// Attention by dot products in float32, for inputs or caches of float32.
#pragma once

#include "cuda/attend/dot/softmax.h"
#include "cuda/attend/dot/tile.h"
#include "cuda/attend/split.h"
#include "cuda/attend/work.h"

namespace kvjit {

template <bool kDecode>
struct alignas(16) DotShared {
    using Shape = DotShape<kDecode>;
    static constexpr int kTilesBytes = Shape::kTeams * 2 * Shape::kTileBytes;
    static constexpr int kMergeBytes = kDecode ? dot_merge_bytes(kFormat) : 0;

    DotRow query[Shape::kTileRows];  // at the end prefill's sums of values
    float probabilities[kAttendWarps][Shape::kWarpRows * Shape::kKeys];
    alignas(16) char tiles[kTilesBytes > kMergeBytes ? kTilesBytes : kMergeBytes];  // each team's, of keys and values

    KVJIT_INLINE char* team_tiles() { return tiles + (kDecode ? warp_index() : 0) * 2 * Shape::kTileBytes; }
};

// ---- Queries -------------------------------------------------------------------------------------------------------

/// Loads the tile's query rows as float32. Rows past the last are zeros, and so are their probabilities, since for_rows
/// computes with some of them. The block calls it together.
template <bool kDecode>
KVJIT_INLINE void load_queries(const AttendWork& work, DotShared<kDecode>& shared) {
    using Shape = DotShape<kDecode>;
    for (i32 r = warp_index(); r < Shape::kTileRows; r += kAttendWarps) {
        RowLanes row;
        load_lanes(row, query_row(work, work.row_begin + r), work.row_begin + r < work.row_end);
        store_row(shared.query[r].elements, row);
    }
    float* probabilities = shared.probabilities[warp_index()];
    for (i32 i = lane_index(); i < Shape::kWarpRows * Shape::kKeys; i += kWarpSize) probabilities[i] = 0.0f;
    barrier();
}

// ---- Scores, mask, online softmax, PV ------------------------------------------------------------------------------

template <bool kDecode>
KVJIT_INLINE void team_barrier() {
    if constexpr (kDecode)
        warp_barrier();
    else
        barrier();
}

/// The halves of a tile's step: its keys, then its values.
enum Half : i32 { kKeysHalf, kValuesHalf };

/// Issues the copies of one half of a tile to its place in the team's shared memory.
template <bool kDecode>
KVJIT_INLINE void copy_half(const AttendWork& work, char* tiles, Half half, const KeySlot& slot) {
    const abi::Cache& cache = work.args.cache;
    const bool values = half == kValuesHalf;
    copy_tile<kDecode>(work, values ? cache.value : cache.key, values ? cache.value_scale : cache.key_scale,
                       tiles + half * DotShape<kDecode>::kTileBytes, slot);
}

/// First key of the team's first tile. Decode's warps take tiles by their absolute number modulo kAttendWarps.
template <bool kDecode>
KVJIT_INLINE i64 first_key(const AttendWork& work) {
    constexpr i32 kKeys = DotShape<kDecode>::kKeys;
    const i64 first = first_tile_key<kKeys>(work);
    if constexpr (!kDecode) return first;
    const i32 turn = static_cast<i32>(first / kKeys) % kAttendWarps;
    return first + (warp_index() - turn + kAttendWarps) % kAttendWarps * kKeys;
}

/// Attends all tiles of the team, in half steps: the copies of the next half run while one is computed with.
template <bool kDecode, int kRows>
KVJIT_INLINE void attend_tiles(const AttendWork& work, DotShared<kDecode>& shared, const DotRow* query, WarpRows& rows,
                               RowLanes (&acc)[kRows]) {
    using Shape = DotShape<kDecode>;
    constexpr i64 kStride = Shape::kTeams * Shape::kKeys;
    char* tiles = shared.team_tiles();
    float* scores = shared.probabilities[warp_index()];
    i64 first = first_key<kDecode>(work);
    KeySlot slot = slot_of_lane<kDecode>(work, first);  // in the tile that is copied next
    Rescale change = {1.0f, 0};
    copy_half<kDecode>(work, tiles, kKeysHalf, slot);
#pragma unroll 1
    for (Half half = kKeysHalf; first < work.keys.end; half = half == kKeysHalf ? kValuesHalf : kKeysHalf) {
        const ShortRange keys = keys_of_tile<Shape::kKeys>(rows.seen_by_some, first);
        const bool seen = keys.meets_tile(Shape::kKeys);
        copy_half<kDecode>(work, tiles, half == kKeysHalf ? kValuesHalf : kKeysHalf, slot);
        if (half == kKeysHalf) slot = slot_of_lane<kDecode>(work, first + kStride);
        wait_copies<1>();
        team_barrier<kDecode>();
        if (half == kKeysHalf && seen) {
            score_tile<kDecode>(scores, query, rows, tiles);
            change = softmax_tile<kDecode>(work, rows, scores, static_cast<i32>(first));
        } else if (seen) {
            rescale(acc, change.factor);
            add_values<kDecode>(acc, scores, rows.count, tiles + Shape::kTileBytes, keys.end, change.seen);
        }
        team_barrier<kDecode>();
        if (half == kValuesHalf) first += kStride;
    }
}

// ---- The block -----------------------------------------------------------------------------------------------------

/// Stages the warp's sums of values, not yet divided, with max and sum of their rows.
template <int kRows>
KVJIT_INLINE void stage_rows(DotRow* to, const WarpRows& rows, const RowLanes (&acc)[kRows]) {
#pragma unroll
    for (int r = 0; r < kRows; ++r)
        if (r < rows.count) store_row(to[r].elements, acc[r]);
    if (lane_index() < rows.count) store_pair(to[lane_index()].running, {rows.running.max, rows.running.sum});
}

/// Attends a tile of rows and a split of its keys. The block calls it together.
template <bool kDecode>
KVJIT_INLINE void attend_dot(const AttendWork& work) {
    using Shape = DotShape<kDecode>;
    auto& shared = shared_memory<DotShared<kDecode>>();
    static_assert(sizeof(shared) == dot_shared_bytes(kDecode, kFormat));
    load_queries(work, shared);
    WarpRows rows = rows_of_warp<kDecode>(work);
    DotRow* query = shared.query + (kDecode ? 0 : warp_index() * Shape::kWarpRows);
    RowLanes acc[Shape::kWarpRows];
#pragma unroll
    for (int r = 0; r < Shape::kWarpRows; ++r) clear_lanes(acc[r]);
    attend_tiles<kDecode>(work, shared, query, rows, acc);
    // Prefill's warps overwrite their own queries; decode's, which have the same rows, all warps' tiles.
    auto* results = kDecode ? reinterpret_cast<DotRow*>(shared.tiles) : shared.query;
    if constexpr (kDecode) barrier();
    stage_rows(kDecode ? results + warp_index() * Shape::kTileRows : query, rows, acc);
    barrier();
    constexpr i64 kStride = dot_row_stride(kFormat);
    finish_rows<Shape::kTileRows, !kDecode>(
        work, {kDecode ? kAttendWarps : 1, results->elements, results->running, Shape::kTileRows * kStride, kStride});
}

template <bool kDecode>
struct Dot {
    static constexpr LaunchShape kShape = dot_shape(kDecode, kFormat);
    KVJIT_INLINE static void attend(const AttendWork& work) { attend_dot<kDecode>(work); }
};

}  // namespace kvjit
