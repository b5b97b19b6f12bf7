#include "batch/batch_view.h"

#include <cmath>

#include "generator/score_rules.h"

namespace kvjit::rt {
namespace {

/// For a rule that the spec lacks, the neutral value, whatever the batch has for other operators.
abi::ScoreArgs score_args(const gen::KernelSpec& spec, const kvjit_batch& batch) {
    abi::ScoreArgs args{};
    const float default_scale = 1.0f / std::sqrt(static_cast<float>(spec.head_dim));
    args.softmax_scale = batch.softmax_scale != 0 ? batch.softmax_scale : default_scale;
    for (const gen::ScoreRule& rule : gen::kScoreRules) {
        gen::for_each_number(rule, [&](const auto& number) {
            const auto given = spec.*rule.member != 0 ? batch.*number.given : number.none;
            args.*number.passed = given != number.none ? given : number.none_passed;
        });
    }
    return args;
}

StoreSlots store_slots(bool may_store, const kvjit_batch& batch) {
    const kvjit_tensor& slots = batch.store_slots;
    if (!may_store || slots.rank == 0) return {{}, false, 0, abi::kNoLimit};
    const bool layers = slots.rank == 2;
    return {{slots.data, slots.dtype == KVJIT_I32}, layers, layers ? slots.strides[0] : 0, slots.shape[slots.rank - 1]};
}

}  // namespace

std::int64_t row_bytes(const gen::KernelSpec& spec) {
    const std::int64_t codes = gen::code_elements(spec) * gen::dtype_bytes(gen::cache_type(spec));
    if (spec.quant_bit == 0) return codes;
    return codes + gen::scale_elements(spec) * gen::dtype_bytes(gen::scale_type(spec));
}

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
            .score = score_args(spec, batch),
            .stores = may_store};
}

}  // namespace kvjit::rt
