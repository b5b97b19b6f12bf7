// attend for few query rows, by dot products in float32 (docs/semantics.md, section 3): for queries or caches of
// float32, and for one query head per kv head.
#include "cuda/attend/decode.h"
#include "cuda/attend/dot/attend.h"
#include "cuda/attend/partial.h"
#include "cuda/shape.h"

namespace kvjit {

// ---- 2. Work split: cuda/attend/decode.h; 3. Load Q, 4. Per key tile: cuda/attend/dot/attend.h ----------------------

// ---- 5. Merge, 6. Store --------------------------------------------------------------------------------------------

/// The warps' results for kDotMergeRows rows, in shared memory.
struct DotMerge {
    float acc[kAttendWarps][kDotMergeRows][kHeadDim];
    Running running[kAttendWarps][kDotMergeRows];
};

/// Merges the results of all warps, which have the same rows and different keys: a few rows at a time are exchanged
/// through shared memory, and each warp merges one of them.
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

/// Attends a tile of rows and a split of its keys. The block calls it together.
KVJIT_INLINE void attend_dot(const AttendWork& work) {
    static_assert(sizeof(DotMerge) == dot_merge_bytes(kFormat));
    auto& shared = shared_memory<DotShared<true>>();
    DotResult<true> result;
    attend_rows(result, shared, work);
    merge_warps(work, *reinterpret_cast<DotMerge*>(shared.tiles), result.rows, result.acc);
}

struct Dot {
    static constexpr LaunchShape kShape = dot_shape(true, kFormat);
    KVJIT_INLINE static void attend(const AttendWork& work) { attend_dot(work); }
};

}  // namespace kvjit

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

KVJIT_ENTRY(kvjit::Dot::kShape.threads, kvjit::Dot::kShape.blocks_per_sm)
kvjit_attend_decode(KVJIT_PARAM(kvjit::abi::CudaAttendArgs) args) {
    kvjit::attend_block<kvjit::Dot>(args);
}
