#include "call/bind.h"

#include <cmath>

namespace kvjit::rt {
namespace {

char* bytes(const kvjit_tensor& tensor) {
    return static_cast<char*>(tensor.data);
}

/// (token, head, D)
abi::Rows rows(const kvjit_tensor& tensor) {
    const std::int64_t size = element_bytes(tensor);
    return {bytes(tensor), tensor.strides[0] * size, tensor.strides[1] * size};
}

void bind_lse(const kvjit_tensors& tensors, float*& lse, std::int64_t& token_stride, std::int64_t& head_stride) {
    lse = static_cast<float*>(tensors.lse.data);
    token_stride = tensors.lse.strides[0];
    head_stride = tensors.lse.strides[1];
}

void bind_mask(const kvjit_tensor& mask, abi::AttendArgs& args) {
    if (mask.rank == 0) return;
    const std::int64_t size = element_bytes(mask);
    args.mask = bytes(mask);
    args.mask_row_stride = mask.strides[mask.rank - 2] * size;
    args.mask_head_stride = mask.rank == 3 ? mask.strides[0] * size : 0;
}

/// slope[h] = 2^(-8 (h+1) / c) for h < c, 2^(-4 (2 (h-c) + 1) / c) for the rest; c = 2^floor(log2 H), in float32.
std::vector<float> usual_slopes(std::int64_t num_heads) {
    std::int64_t c = 1;
    while (c * 2 <= num_heads) c *= 2;
    std::vector<float> slopes;
    slopes.reserve(static_cast<std::size_t>(num_heads));
    for (std::int64_t h = 0; h < num_heads; ++h) {
        const std::int64_t numerator = h < c ? -8 * (h + 1) : -4 * (2 * (h - c) + 1);
        slopes.push_back(std::exp2(static_cast<float>(numerator) / static_cast<float>(c)));
    }
    return slopes;
}

abi::MergeArgs merge_output(const kvjit_tensors& tensors) {
    abi::MergeArgs args{};
    args.output = rows(tensors.attn_output);
    bind_lse(tensors, args.lse, args.lse_token_stride, args.lse_head_stride);
    args.sinks = static_cast<const float*>(tensors.sinks.data);
    return args;
}

abi::Indices slots_of(const StoreSlots& chosen, std::int64_t layer) {
    if (chosen.slots.data == nullptr) return {};
    const std::int64_t bytes = chosen.slots.narrow ? 4 : 8;
    return {static_cast<const char*>(chosen.slots.data) + layer * chosen.layer_stride * bytes, chosen.slots.narrow};
}

}  // namespace

abi::StoreArgs bind_store(const BatchView& batch, const kvjit_tensors& tensors, std::int64_t layer_idx) {
    const CacheView::CachePieces pieces = batch.cache.pieces(tensors);
    return {.cache = batch.cache.planes(tensors, layer_idx),
            .key_pieces = pieces.key,
            .value_pieces = pieces.value,
            .table = batch.cache.table(layer_idx),
            .key = rows(tensors.current_key),
            .value = rows(tensors.current_value),
            .seqstarts = batch.seqstarts,
            .keys = batch.keys,
            .slots = slots_of(batch.store_slots, layer_idx),
            .slot_tokens = batch.cache.block_tokens()};
}

abi::LoadArgs bind_load(const BatchView& batch, const kvjit_tensors& tensors, std::int64_t layer_idx) {
    const CacheView::CachePieces pieces = batch.cache.pieces(tensors);
    return {.cache = batch.cache.planes(tensors, layer_idx),
            .key_pieces = pieces.key,
            .value_pieces = pieces.value,
            .table = batch.cache.table(layer_idx),
            .key = rows(tensors.key),
            .value = rows(tensors.value),
            .keys = batch.keys,
            .num_repeat = batch.num_repeat};
}

abi::AttendArgs bind_attend(const BatchView& batch, const kvjit_tensors& tensors, std::int64_t layer_idx) {
    abi::AttendArgs args{};
    args.query = rows(tensors.query);
    args.output = rows(tensors.attn_output);
    bind_lse(tensors, args.lse, args.lse_token_stride, args.lse_head_stride);
    args.cache = batch.cache.planes(tensors, layer_idx);
    args.table = batch.cache.table(layer_idx);
    args.seqstarts = batch.seqstarts;
    args.keys = batch.keys;
    bind_mask(tensors.attn_mask, args);
    args.num_kv_heads = batch.num_kv_heads;
    args.decoding_batches = batch.decoding_batches;
    args.score = batch.score;
    args.score.sinks = static_cast<const float*>(tensors.sinks.data);
    return args;
}

abi::MergeArgs bind_merge(const kvjit_tensors& tensors) {
    abi::MergeArgs args = merge_output(tensors);
    args.acc = bytes(tensors.partial_output);
    args.max = static_cast<const float*>(tensors.partial_lse.data);
    return args;
}

void place_parts(const kvjit_tensors& tensors, std::span<abi::MergeItem> items) {
    const kvjit_tensor& output = tensors.partial_output;
    const kvjit_tensor& lse = tensors.partial_lse;
    for (abi::MergeItem& item : items) {
        item.parts = output.shape[0];
        item.acc_part = output.strides[0];
        item.acc_token = output.strides[1];
        item.acc_head = output.strides[2];
        item.acc = item.token_begin * item.acc_token;
        item.stat_part = lse.strides[0];
        item.stat_token = lse.strides[1];
        item.stat_head = lse.strides[2];
        item.stat = item.token_begin * item.stat_token;
    }
}

abi::MergeArgs bind_split_merge(const kvjit_tensors& tensors, const float* partials) {
    abi::MergeArgs args = merge_output(tensors);
    args.acc = reinterpret_cast<const char*>(partials);
    args.max = partials;
    args.sum = partials + 1;
    return args;
}

std::vector<float> slopes_of(const BatchView& batch, const float* given) {
    if (!batch.spec.is_alibi) return {};
    return given != nullptr ? std::vector<float>(given, given + batch.num_heads) : usual_slopes(batch.num_heads);
}

}  // namespace kvjit::rt
