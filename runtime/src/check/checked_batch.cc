#include "check/checked_batch.h"

#include <algorithm>

#include "check/arithmetic.h"

namespace kvjit::rt {
namespace {

/// The extents of the table, as far as its kind has them.
void add_table(const BatchView& view, abi::CheckedBatch& checked) {
    const std::int64_t* shape = view.cachestarts.shape + (view.cache.has_layers() ? 1 : 0);
    if (view.spec.cache_mode == KVJIT_TOKEN_TABLE) {
        checked.table_keys = shape[0];
    } else if (is_given(checked.table.rowstarts)) {
        checked.table_entries = shape[0];
    }
    checked.table_rows = shape[0];
    checked.row_entries = gen::is_paged(view.spec) ? shape[1] : 1;
}

abi::BlockMemory aligned(const abi::BlockMemory& blocks, std::int64_t alignment) {
    return {std::max(blocks.alignment, alignment), blocks.bytes};
}

}  // namespace

abi::CheckedBatch checked_batch(const BatchView& view, std::int64_t alignment) {
    abi::CheckedBatch checked{};
    const bool copies = !gen::has_query_heads(view.spec);
    const std::int64_t head_dim = view.spec.head_dim, kv = view.num_kv_heads;
    checked.batch_size = view.batch_size;
    checked.seqstarts = view.seqstarts;
    checked.keys = view.keys;
    checked.start_pos = view.start_pos;
    checked.stores = view.stores;
    checked.max_seqlen = view.max_seqlen;
    checked.max_kvlen = view.max_kvlen;
    checked.most_tokens = most_rows(copies ? kv * head_dim : view.num_heads * head_dim);
    checked.most_keys = kv == 0 ? 0 : most_rows(saturating_product(kv, head_dim, copies ? view.num_repeat : 1));
    checked.window_left = view.score.window_left;
    checked.num_slots = view.cache.num_slots();
    checked.block_tokens = view.cache.block_tokens();
    checked.codes = aligned(view.cache.code_blocks(), alignment);
    checked.scales = aligned(view.cache.scale_blocks(), alignment);
    checked.table = view.cache.table(0);
    checked.slots = view.store_slots.slots;
    checked.slot_rows = view.store_slots.rows;
    checked.layer_entries = view.cache.layer_entries();
    checked.layer_slots = view.store_slots.layer_stride;
    checked.layers = view.cache.has_layers() || view.store_slots.has_layers ? view.cache.num_layers() : 1;
    checked.table_keys = checked.table_entries = abi::kNoLimit;
    if (gen::has_cache(view.spec)) add_table(view, checked);
    return checked;
}

}  // namespace kvjit::rt
