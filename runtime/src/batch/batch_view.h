// A batch as the kernels of one plan see it, with defaults filled in.
#pragma once

#include <cstdint>

#include "batch/cache_view.h"
#include "common/abi.h"
#include "common/batch_rules.h"
#include "common/key_range.h"
#include "generator/operator.h"

namespace kvjit::rt {

/// An array of the batch; null if it was not given.
inline abi::Indices indices(const gen::KernelSpec& spec, const void* array) {
    return {array, spec.starts_type == KVJIT_I32};
}

inline std::int64_t element_bytes(const kvjit_tensor& tensor) {
    return gen::dtype_bytes(static_cast<kvjit_dtype>(tensor.dtype));
}

/// Bytes of one head's key or value of a token, codes and scales.
std::int64_t row_bytes(const gen::KernelSpec& spec);

/// Hkv. If it wasn't given, it follows from H and the group; or is H, for operators without query heads.
inline std::int64_t kv_heads(const gen::KernelSpec& spec, const kvjit_batch& batch) {
    if (batch.num_kv_heads != 0) return batch.num_kv_heads;
    return gen::has_query_heads(spec) ? batch.num_heads / spec.group : batch.num_heads;
}

/// H. If it wasn't given, it follows from Hkv and the group.
inline std::int64_t query_heads(const gen::KernelSpec& spec, const kvjit_batch& batch) {
    return batch.num_heads != 0 ? batch.num_heads : batch.num_kv_heads * spec.group;
}

/// S: rows of query-side tensors. 0 where B == 0, whatever seqstarts is.
inline std::int64_t query_rows(const gen::KernelSpec& spec, const kvjit_batch& batch) {
    return batch.batch_size == 0 ? 0 : index_at(indices(spec, batch.seqstarts), batch.batch_size);
}

/// K: rows of packed key and value. 0 where B == 0, for Merge, which has no keys, and where kvstarts isn't given.
inline std::int64_t key_rows(const gen::KernelSpec& spec, const kvjit_batch& batch) {
    if (batch.batch_size == 0 || !gen::has_keys(spec) || batch.kvstarts == nullptr) return 0;
    return index_at(indices(spec, batch.kvstarts), batch.batch_size);
}

/// The sequences' counts of keys; none given: Merge.
abi::KeyCounts key_counts(const gen::KernelSpec& spec, const kvjit_batch& batch);

/// Slots that the caller chose for new tokens, whatever the table says: (S), or (L, S).
struct StoreSlots {
    abi::Indices slots;         // of layer 0; null: the table decides
    bool has_layers;            // layers have slots of their own
    std::int64_t layer_stride;  // in elements
    std::int64_t rows;          // S
};

/// The batch's arrays are the caller's and outlive it.
struct BatchView {
    gen::KernelSpec spec;
    std::int64_t batch_size;
    std::int64_t num_heads, num_kv_heads;
    std::int64_t decoding_batches;
    std::int64_t num_repeat;
    abi::Indices seqstarts;
    abi::KeyCounts keys;     // none given: Merge
    abi::Indices start_pos;  // null: not given, or the plan stores nothing
    std::int64_t max_seqlen, max_kvlen;
    CacheView cache;
    kvjit_tensor cachestarts;
    StoreSlots store_slots;
    abi::ScoreArgs score;  // without the tensors of runs
    bool stores;           // whether runs may store

    /// The range of keys that the rows of sequence b see.
    Reach reach(std::int64_t b) const {
        return reach_of({score.window_left, score.window_right}, spec.is_causal != 0, spec.is_alibi != 0,
                        b < decoding_batches);
    }
};

/// Precondition: the batch has passed check_batch_scalars. Reads no array. `stores`: BatchUse's.
BatchView batch_view(const gen::KernelSpec& spec, const kvjit_batch& batch, bool stores);

}  // namespace kvjit::rt
