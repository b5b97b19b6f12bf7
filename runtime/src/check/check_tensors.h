// Checks of one run's tensors: docs/semantics.md, section 8.
#pragma once

#include <cstdint>

#include "call/batch_view.h"
#include "check/view.h"

namespace kvjit::rt {

/// Rows that the tensors of a run must have.
struct BatchRows {
    std::int64_t query;  // S
    std::int64_t key;    // K
};

/// From a batch whose arrays the host can read.
BatchRows rows_of(const gen::KernelSpec& spec, const kvjit_batch& batch);

/// Everything about the tensors of one run. The batch has passed check_batch at any level; its arrays are not read.
/// `rows`: 0 where the host doesn't know them. Where the plan stores nothing, current_key and current_value are
/// refused, and cache and scale are inputs alone.
///
/// Which tensors the operator takes (the table above kvjit_tensors); each one's type, rank, extents, pointer and
/// strides (see check_view); current_key and current_value together or neither; layer_idx in 0..L-1 (cache operators).
/// Axes S, K and W may be longer than the batch, the rest is exact. Where B == 0 every tensor may be absent.
/// Of cache and scale the stride of axis 2 may be negative and needn't nest with the others: it is the way from key to
/// value, which may be two allocations, or two views of one pool.
///
/// An output that begins where another tensor begins is refused. Outputs that overlap another tensor elsewhere are not
/// found: that is exact only for contiguous tensors, and strided ones may well interleave.
///
/// Errors: KVJIT_BAD_ARGUMENT, KVJIT_BAD_DTYPE, KVJIT_BAD_SHAPE. Reads no tensor's elements, O(1). Allocates on failure
/// only. Thread-safe.
gen::Result<void> check_tensors(const BatchView& batch, const BatchRows& rows, const kvjit_tensors& tensors,
                                std::int64_t layer_idx);

/// What CUDA kernels need beyond: tensors of rows begin at multiples of 16 bytes, and their strides keep rows aligned
/// to row_alignment. Errors: KVJIT_BAD_ARGUMENT, KVJIT_BAD_SHAPE. O(1). Thread-safe.
gen::Result<void> check_row_alignment(const gen::KernelSpec& spec, const kvjit_tensors& tensors);

/// The widest access that divides a row of `bytes`: 16, 8, 4, 2 or 1.
constexpr std::int64_t row_alignment(std::int64_t bytes) {
    for (std::int64_t width = 16; width > 1; width /= 2) {
        if (bytes % width == 0) return width;
    }
    return 1;
}

}  // namespace kvjit::rt
