#include "call/batch_view.h"

#include <cmath>

namespace kvjit::rt {
namespace {

/// -1, the default, is no limit.
Reach window_of(const gen::KernelSpec& spec, const kvjit_batch& batch) {
    const auto limit = [&spec](std::int64_t window) {
        return spec.has_window == 0 || window < 0 ? abi::kNoLimit : window;
    };
    return {limit(batch.window_left), limit(batch.window_right)};
}

StoreSlots store_slots(bool may_store, const kvjit_batch& batch) {
    const kvjit_tensor& slots = batch.store_slots;
    if (!may_store || slots.rank == 0) return {{}, 0, abi::kNoLimit};
    return {
        {slots.data, slots.dtype == KVJIT_I32}, slots.rank == 2 ? slots.strides[0] : 0, slots.shape[slots.rank - 1]};
}

}  // namespace

abi::KeyCounts key_counts(const gen::KernelSpec& spec, const kvjit_batch& batch) {
    if (!gen::has_keys(spec)) return {};
    return {.starts = indices(spec, batch.kvstarts),
            .counts = indices(spec, batch.kvlens),
            .last = indices(spec, batch.last_page_len),
            .page_starts = indices(spec, batch.rowstarts),
            .page_tokens = gen::page_tokens(spec)};
}

BatchView batch_view(const gen::KernelSpec& spec, const kvjit_batch& batch, bool stores) {
    const std::int64_t heads = gen::has_keys(spec) ? kv_heads(spec, batch) : 0;
    const bool may_store = stores && gen::has_cache(spec);
    const float default_scale = 1.0f / std::sqrt(static_cast<float>(spec.head_dim));
    return {.spec = spec,
            .batch_size = batch.batch_size,
            .num_heads = query_heads(spec, batch),
            .num_kv_heads = heads,
            .decoding_batches = batch.decoding_batches,
            .num_repeat = batch.num_repeat,
            .seqstarts = indices(spec, batch.seqstarts),
            .keys = key_counts(spec, batch),
            .start_pos = indices(spec, may_store ? batch.start_pos : nullptr),
            .max_seqlen = batch.max_seqlen,
            .max_kvlen = batch.max_kvlen,
            .cache = CacheView(spec, batch, heads),
            .cachestarts = batch.cachestarts,
            .store_slots = store_slots(may_store, batch),
            .window = window_of(spec, batch),
            .softmax_scale = batch.softmax_scale != 0 ? batch.softmax_scale : default_scale,
            .soft_cap = batch.soft_cap,
            .stores = may_store};
}

}  // namespace kvjit::rt
