// Checks of one run's tensors: docs/semantics.md, section 8.
#pragma once

#include <cstdint>

#include "batch/batch_view.h"
#include "check/view.h"

namespace kvjit::rt {

/// Rows that the tensors of a run must have.
struct BatchRows {
    std::int64_t query;  // S
    std::int64_t key;    // K
};

/// Rows of a batch whose arrays the host can read.
BatchRows rows_of(const gen::KernelSpec& spec, const kvjit_batch& batch);

/// Checks all tensors of one run. Precondition: the batch has passed check_batch at any level; its arrays are not read.
/// `rows`: 0 where the host doesn't know them. If the plan stores nothing, current_key and current_value are refused,
/// and cache and scale are inputs only.
///
/// Checks which tensors the operator takes (the table above kvjit_tensors); type, rank, extents, pointer and strides of
/// each (see check_view); that current_key and current_value are given together or not at all; layer_idx in 0..L-1
/// (cache operators). Axes S, K and W may be longer than the batch, others are exact. Where B == 0 every tensor may be
/// absent. The stride of axis 2 of cache and scale may be negative and needn't nest with the others: it leads from keys
/// to values, which may be two allocations, or two views of one pool.
///
/// An output that begins where another tensor begins is refused. Other overlaps with an output are not found: that is
/// exact only for contiguous tensors, and strided ones may interleave legally.
///
/// Errors: KVJIT_BAD_ARGUMENT, KVJIT_BAD_DTYPE, KVJIT_BAD_SHAPE. Reads no tensor's elements, O(1). Allocates on failure
/// only. Thread-safe.
gen::Result<void> check_tensors(const BatchView& batch, const BatchRows& rows, const kvjit_tensors& tensors,
                                std::int64_t layer_idx);

/// The further conditions of CUDA kernels: tensors of rows begin at multiples of 16 bytes, and their strides keep rows
/// aligned to the widest access that the kernels make (widest_access). Errors: KVJIT_BAD_ARGUMENT, KVJIT_BAD_SHAPE.
/// O(1). Thread-safe.
gen::Result<void> check_row_alignment(const BatchView& batch, const kvjit_tensors& tensors);

}  // namespace kvjit::rt
