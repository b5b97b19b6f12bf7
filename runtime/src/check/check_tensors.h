// Checks of one run's tensors: docs/semantics.md, section 8.
#pragma once

#include <cstdint>

#include "check/view.h"
#include "generator/spec.h"

namespace kvjit::rt {

/// Everything about the tensors of one run. `spec` is validated, `batch` has passed check_batch at any level.
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
gen::Result<void> check_tensors(const gen::KernelSpec& spec, const kvjit_batch& batch, const kvjit_tensors& tensors,
                                std::int64_t layer_idx);

}  // namespace kvjit::rt
