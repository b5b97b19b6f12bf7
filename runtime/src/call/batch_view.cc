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

}  // namespace

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
            .keys = {indices(spec, gen::has_keys(spec) ? batch.kvstarts : nullptr), {}, {}},
            .start_pos = indices(spec, may_store ? batch.start_pos : nullptr),
            .max_seqlen = batch.max_seqlen,
            .max_kvlen = batch.max_kvlen,
            .cache = CacheView(spec, batch, heads),
            .cachestarts = batch.cachestarts,
            .window = window_of(spec, batch),
            .softmax_scale = batch.softmax_scale != 0 ? batch.softmax_scale : default_scale,
            .soft_cap = batch.soft_cap,
            .stores = may_store};
}

}  // namespace kvjit::rt
