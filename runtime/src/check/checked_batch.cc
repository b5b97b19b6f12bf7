#include "check/checked_batch.h"

#include "check/arithmetic.h"
#include "check/check_batch.h"

namespace kvjit::rt {
namespace {

void add_table(const gen::KernelSpec& spec, const kvjit_batch& batch, abi::CheckedBatch& checked) {
    const std::int64_t* shape = batch.cachestarts.shape;
    checked.table = table_of(spec, batch);
    checked.num_slots = spec.cache_mode == KVJIT_BLOCK_TABLE ? batch.num_blocks : batch.max_tokens;
    if (spec.cache_mode == KVJIT_TOKEN_TABLE) checked.table_keys = shape[0];
    if (batch.rowstarts != nullptr) checked.table_entries = shape[0];
    checked.table_rows = shape[0];
    checked.row_entries = gen::is_paged(spec) ? shape[1] : 1;
}

}  // namespace

abi::Table table_of(const gen::KernelSpec& spec, const kvjit_batch& batch) {
    if (!gen::has_cache(spec)) return {batch.kvstarts, nullptr, nullptr, 1};
    const kvjit_tensor& starts = batch.cachestarts;
    if (spec.cache_mode == KVJIT_TOKEN_TABLE) return {starts.data, batch.kvstarts, nullptr, 0};
    return {starts.data, batch.rowstarts, batch.row_index, starts.strides[0]};
}

Paging paging_of(const gen::KernelSpec& spec) {
    if (!gen::has_cache(spec) || spec.cache_mode == KVJIT_OFFSET) return {0, false};
    return {gen::is_paged(spec) ? spec.page_size : 1, spec.cache_mode == KVJIT_BLOCK_TABLE};
}

abi::CheckedBatch checked_batch(const gen::KernelSpec& spec, const kvjit_batch& batch, bool stores) {
    abi::CheckedBatch checked{};
    const bool has_keys = gen::has_keys(spec);
    const bool copies = gen::loads(spec);
    const std::int64_t head_dim = spec.head_dim, kv = has_keys ? kv_heads(spec, batch) : 0;
    checked.batch_size = batch.batch_size;
    checked.seqstarts = batch.seqstarts;
    checked.kvstarts = has_keys ? batch.kvstarts : nullptr;
    checked.start_pos = stores && gen::has_cache(spec) ? batch.start_pos : nullptr;
    checked.max_seqlen = batch.max_seqlen;
    checked.max_kvlen = batch.max_kvlen;
    checked.most_tokens = most_rows(copies ? kv * head_dim : batch.num_heads * head_dim);
    checked.most_keys = has_keys ? most_rows(saturating_product(kv, head_dim, copies ? batch.num_repeat : 1)) : 0;
    checked.num_slots = checked.table_keys = checked.table_entries = abi::kNoLimit;
    if (gen::has_cache(spec)) add_table(spec, batch, checked);
    return checked;
}

}  // namespace kvjit::rt
