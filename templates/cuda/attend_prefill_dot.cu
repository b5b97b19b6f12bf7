// attend for many query rows, by dot products in float32 (docs/semantics.md, section 3): for queries or caches of
// float32, and for one query head per kv head.
#include "cuda/attend/dot/attend.h"
#include "cuda/attend/partial.h"
#include "cuda/attend/prefill.h"
#include "cuda/shape.h"

namespace kvjit {

// ---- 2. Work split: cuda/attend/prefill.h; 3. Load Q, 4. Per key tile: cuda/attend/dot/attend.h ---------------------

// ---- 6. Store ------------------------------------------------------------------------------------------------------

/// Writes the warp's rows. They pass through the shared memory of their queries, because registers can't be indexed.
template <int kRows>
KVJIT_INLINE void emit_rows(const AttendWork& work, float* query, const WarpRows& rows, const RowLanes (&acc)[kRows]) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) store_lanes(query + r * kHeadDim, acc[r]);
#pragma unroll 1
    for (i32 r = 0; r < rows.count; ++r) {
        RowLanes row;
        load_lanes(row, query + r * kHeadDim);
        emit_row(work, rows.first + r, row, {shuffle(rows.running.max, r), shuffle(rows.running.sum, r)});
    }
}

/// Attends a tile of rows and a split of its keys. The block calls it together.
KVJIT_INLINE void attend_dot(const AttendWork& work) {
    DotResult<false> result;
    attend_rows(result, shared_memory<DotShared<false>>(), work);
    emit_rows(work, result.query, result.rows, result.acc);
}

struct Dot {
    static constexpr LaunchShape kShape = dot_shape(false, kFormat);
    KVJIT_INLINE static void attend(const AttendWork& work) { attend_dot(work); }
};

}  // namespace kvjit

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

KVJIT_ENTRY(kvjit::Dot::kShape.threads, kvjit::Dot::kShape.blocks_per_sm)
kvjit_attend_prefill(KVJIT_PARAM(kvjit::abi::CudaAttendArgs) args) {
    kvjit::attend_block<kvjit::Dot>(args);
}
