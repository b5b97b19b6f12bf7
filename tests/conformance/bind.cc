// A call as the public API's structs, and as a line for people.
#include <algorithm>

#include "conformance/call.h"

namespace kvjit::test {
namespace {

std::string numbers_text(const char* name, const std::vector<std::int64_t>& numbers) {
    std::string text = std::string(" ") + name + "=[";
    for (std::size_t i = 0; i < numbers.size() && i < 12; ++i) text += (i ? "," : "") + std::to_string(numbers[i]);
    return text + (numbers.size() > 12 ? ",...]" : "]");
}

/// What follows from the rest.
void leave_out(const Case& which, kvjit_batch& batch) {
    const bool has_group = which.spec.op != KVJIT_OP_KEY_VALUE_CACHE;
    if (which.given == Given::kAll) return;
    batch.start_pos = nullptr;
    if (which.given == Given::kKvHeads && has_group) batch.num_heads = 0;
    if (which.given == Given::kHeads && has_group) batch.num_kv_heads = 0;
}

/// Blocks at addresses are no tensors of the call.
void bind_cache(const Call& call, kvjit_tensors& tensors) {
    if (call.which.spec.cache_mode == KVJIT_BLOCK_POINTERS || call.cache.empty()) return;
    const bool apart = call.cache.size() == 2;
    (apart ? tensors.key_cache : tensors.cache) = call.cache[0].view();
    if (apart) tensors.value_cache = call.cache[1].view();
    if (call.scale.empty()) return;
    (apart ? tensors.key_scale : tensors.scale) = call.scale[0].view();
    if (apart) tensors.value_scale = call.scale[1].view();
}

}  // namespace

Bound bind(const Call& call) {
    Bound bound{call.which.spec, {}, {}, call.problem.layer};
    const Problem& problem = call.problem;
    kvjit_batch& batch = bound.batch;
    kvjit_batch_init(&batch);
    batch.batch_size = problem.batch_size();
    batch.num_heads = problem.num_heads;
    batch.num_kv_heads = problem.num_kv_heads;
    batch.num_layers = problem.num_layers;
    const auto mode = static_cast<kvjit_cache_mode>(call.which.spec.cache_mode);
    const bool numbered = mode == KVJIT_BLOCK_TABLE || mode == KVJIT_SEQUENCE_TABLE;
    batch.max_tokens = mode == KVJIT_BLOCK_TABLE || mode == KVJIT_BLOCK_POINTERS ? 0 : call.max_tokens;
    batch.num_blocks = numbered ? call.num_blocks : 0;
    batch.decoding_batches = problem.decoding_batches;
    for (std::int64_t b = 0; call.which.bounds_known && b < problem.batch_size(); ++b) {
        batch.max_seqlen = std::max(batch.max_seqlen, problem.new_tokens(b));
        batch.max_kvlen = std::max(batch.max_kvlen, problem.kv_tokens(b));
    }
    batch.seqstarts = call.seqstarts.view().data;
    batch.kvstarts = call.kvstarts.view().data;
    batch.kvlens = call.kvlens.view().data;
    batch.last_page_len = call.last_page_len.view().data;
    batch.store_slots = call.store_slots.view();
    batch.start_pos = call.start_pos.view().data;
    batch.cachestarts = call.cachestarts.view();
    batch.scalestarts = call.scalestarts.view();
    batch.rowstarts = call.rowstarts.view().data;
    batch.row_index = call.row_index.view().data;
    leave_out(call.which, batch);
    batch.alibi_slopes = problem.slopes.empty() ? nullptr : problem.slopes.data();
    batch.softmax_scale = problem.softmax_scale;
    batch.window_left = problem.window_left;
    batch.window_right = problem.window_right;
    batch.soft_cap = problem.soft_cap;
    batch.num_repeat = problem.num_repeat;

    kvjit_tensors& tensors = bound.tensors;
    kvjit_tensors_init(&tensors);
    tensors.query = call.query.view();
    tensors.current_key = call.current_key.view();
    tensors.current_value = call.current_value.view();
    bind_cache(call, tensors);
    tensors.attn_mask = call.mask.view();
    tensors.sinks = call.sinks.view();
    tensors.key = call.key.view();
    tensors.value = call.value.view();
    tensors.attn_output = call.attn_output.view();
    tensors.lse = call.lse.view();
    return bound;
}

std::string describe(const Call& call) {
    std::string text;
    kvjit_spec_print(
        &call.which.spec,
        [](void* context, const char* piece, size_t size) { static_cast<std::string*>(context)->append(piece, size); },
        &text, nullptr);
    const Problem& problem = call.problem;
    text += " num_heads=" + std::to_string(problem.num_heads) + " num_kv_heads=" + std::to_string(problem.num_kv_heads);
    text += " layer=" + std::to_string(problem.layer) + "/" + std::to_string(problem.num_layers);
    text += " decoding_batches=" + std::to_string(problem.decoding_batches);
    text += " window=" + std::to_string(problem.window_left) + "," + std::to_string(problem.window_right);
    text += numbers_text("seqstarts", problem.seqstarts) + numbers_text("kvstarts", problem.kvstarts);
    text += numbers_text("rowstarts", problem.rowstarts) + numbers_text("row_index", problem.row_index);
    text += " max_tokens=" + std::to_string(call.max_tokens) + " threads=" + std::to_string(call.which.threads);
    text += " stores=" + std::to_string(static_cast<int>(call.which.stores));
    text += " order=" + std::to_string(static_cast<int>(call.which.order));
    return text + " spread=" + std::to_string(static_cast<int>(call.which.spread));
}

}  // namespace kvjit::test
