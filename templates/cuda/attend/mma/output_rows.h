// Results of prefill's blocks by tensor cores, staged in shared memory for the output.
#pragma once

#include "cuda/attend/mma/accumulator.h"
#include "cuda/attend/mma/operands.h"
#include "cuda/attend/mma/softmax.h"
#include "cuda/attend/split.h"
#include "cuda/attend/work.h"
#include "cuda/shape.h"

namespace kvjit {

template <int kRows>
struct alignas(16) OutputRowsOf {
    static constexpr int kSums = mma_output_elements(kFormat);
    struct Row {
        float sums[kSums];
        float running[2];  // max and sum
        float unit;        // that sums are in
        float padding[mma_output_stride(kFormat) - kSums - 3];
    } rows[kRows];

    /// Stages max and sum of the matrix's rows that the lane has, whose first row is `row`, and what their sums of
    /// values are to be multiplied by.
    KVJIT_INLINE void stage_state(i32 row, const RowState& state, float factor) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const FinishedState finished = finish_state(state, factor, h);
            Row& to = rows[row + 8 * h + lane_row()];
            if (lane_pair() != 0) continue;
            store_pair(to.running, {finished.running.max, finished.running.sum});
            to.unit = finished.weight * kFragmentUnit;
        }
    }

    /// The rows, in one part.
    KVJIT_INLINE RowParts parts() const { return {1, rows[0].sums, rows[0].running, 0, mma_output_stride(kFormat)}; }
};

}  // namespace kvjit
