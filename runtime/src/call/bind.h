// Binds tensors to kernel arguments: addresses and byte strides. Everything has been checked before.
#pragma once

#include <span>
#include <vector>

#include "batch/batch_view.h"
#include "common/abi.h"

namespace kvjit::rt {

abi::StoreArgs bind_store(const BatchView& batch, const kvjit_tensors& tensors, std::int64_t layer_idx);
abi::LoadArgs bind_load(const BatchView& batch, const kvjit_tensors& tensors, std::int64_t layer_idx);
/// Without partials and slopes, which are the plan's.
abi::AttendArgs bind_attend(const BatchView& batch, const kvjit_tensors& tensors, std::int64_t layer_idx);
/// Op Merge: the partials are tensors of the call. place_parts gives their places.
abi::MergeArgs bind_merge(const kvjit_tensors& tensors);
void place_parts(const kvjit_tensors& tensors, std::span<abi::MergeItem> items);
/// Merges an attention call's partials, which lie in `partials`.
abi::MergeArgs bind_split_merge(const kvjit_tensors& tensors, const float* partials);

/// The batch's slopes, or the usual ones (docs/semantics.md, section 3): (H), empty without ALiBi.
std::vector<float> slopes_of(const BatchView& batch, const float* given);

}  // namespace kvjit::rt
