// Tensors to kernel arguments: addresses and byte strides. Everything is checked before it comes here.
#pragma once

#include <vector>

#include "common/abi.h"
#include "generator/spec.h"

namespace kvjit::rt {

/// A batch as the kernels of one plan see it, with the defaults filled in.
struct BoundBatch {
    gen::KernelSpec spec;
    kvjit_batch batch;
    std::int64_t num_kv_heads;
    std::vector<float> slopes;  // (H), empty without ALiBi
    float softmax_scale;
    bool stores;  // whether runs may store
};

BoundBatch bind_batch(const gen::KernelSpec& spec, const kvjit_batch& batch, bool stores);

abi::StoreArgs bind_store(const BoundBatch& bound, const kvjit_tensors& tensors, std::int64_t layer_idx);
abi::LoadArgs bind_load(const BoundBatch& bound, const kvjit_tensors& tensors, std::int64_t layer_idx);
abi::AttendArgs bind_attend(const BoundBatch& bound, const kvjit_tensors& tensors, std::int64_t layer_idx,
                            float* partials);
/// Merges an attention call's partials, which lie in `partials`.
abi::MergeArgs bind_split_merge(const kvjit_tensors& tensors, const float* partials);
/// Op Merge: the parts are tensors of the call; `items` get their places.
abi::MergeArgs bind_merge(const kvjit_tensors& tensors, std::vector<abi::MergeItem>& items);

}  // namespace kvjit::rt
