#include "bind.h"

#include <cmath>

#include "check/check_batch.h"
#include "check/checked_batch.h"

namespace kvjit::rt {
namespace {

std::int64_t element_bytes(const kvjit_tensor& tensor) {
    return gen::dtype_bytes(static_cast<kvjit_dtype>(tensor.dtype));
}

char* bytes(const kvjit_tensor& tensor) {
    return static_cast<char*>(tensor.data);
}

/// (token, head, D)
abi::Rows rows(const kvjit_tensor& tensor) {
    const std::int64_t size = element_bytes(tensor);
    return {bytes(tensor), tensor.strides[0] * size, tensor.strides[1] * size};
}

/// Byte stride of a layout's axis; 0 if the layout lacks it.
std::int64_t axis_stride(const gen::KernelSpec& spec, const kvjit_tensor& tensor, char axis) {
    const std::size_t at = gen::layout_axes(spec).find(axis);
    return at == std::string_view::npos ? 0 : tensor.strides[at] * element_bytes(tensor);
}

/// Key (part 0) or value (part 1) of one layer. Where entries are tokens, a page's stride is a token's.
abi::Plane plane(const gen::KernelSpec& spec, const kvjit_tensor& tensor, std::int64_t layer, std::int64_t part) {
    const std::int64_t token = axis_stride(spec, tensor, 'T');
    const bool blocks = spec.cache_mode == KVJIT_BLOCK_TABLE;
    char* base = bytes(tensor);
    if (base != nullptr) {
        base += layer * axis_stride(spec, tensor, 'L') + part * axis_stride(spec, tensor, '2');
    }
    return {base, blocks ? axis_stride(spec, tensor, 'N') : token, token, axis_stride(spec, tensor, 'H')};
}

abi::Cache bind_cache(const gen::KernelSpec& spec, const kvjit_tensors& tensors, std::int64_t layer) {
    abi::Cache cache{plane(spec, tensors.cache, layer, 0), plane(spec, tensors.cache, layer, 1), {}, {}};
    if (spec.quant_bit != 0) {
        cache.key_scale = plane(spec, tensors.scale, layer, 0);
        cache.value_scale = plane(spec, tensors.scale, layer, 1);
    }
    return cache;
}

/// Packed keys and values as a cache in which sequence b's positions begin at token kvstarts[b].
abi::Cache bind_dense(const kvjit_tensors& tensors) {
    const auto plane = [](const abi::Rows& rows) {
        return abi::Plane{rows.base, rows.token_stride, rows.token_stride, rows.head_stride};
    };
    return {plane(rows(tensors.key)), plane(rows(tensors.value)), {}, {}};
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

/// slope[h] = 2^(-8 (h+1) / c) for h < c, 2^(-4 (2 (h-c) + 1) / c) for the rest; c = 2^floor(log2 H), in float32
/// (docs/semantics.md, section 3).
std::vector<float> alibi_slopes(std::int64_t num_heads) {
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
    return args;
}

}  // namespace

BoundBatch bind_batch(const gen::KernelSpec& spec, const kvjit_batch& batch, bool stores) {
    BoundBatch bound{spec, batch, kv_heads(spec, batch), {}, 0, stores};
    const float default_scale = 1.0f / std::sqrt(static_cast<float>(spec.head_dim));
    bound.softmax_scale = batch.softmax_scale != 0 ? batch.softmax_scale : default_scale;
    if (!spec.is_alibi) return bound;
    bound.slopes = batch.alibi_slopes != nullptr
                       ? std::vector<float>(batch.alibi_slopes, batch.alibi_slopes + batch.num_heads)
                       : alibi_slopes(batch.num_heads);
    bound.batch.alibi_slopes = nullptr;
    return bound;
}

abi::StoreArgs bind_store(const BoundBatch& bound, const kvjit_tensors& tensors, std::int64_t layer_idx) {
    return {bind_cache(bound.spec, tensors, layer_idx),
            table_of(bound.spec, bound.batch),
            rows(tensors.current_key),
            rows(tensors.current_value),
            bound.batch.seqstarts,
            bound.batch.start_pos};
}

abi::LoadArgs bind_load(const BoundBatch& bound, const kvjit_tensors& tensors, std::int64_t layer_idx) {
    return {bind_cache(bound.spec, tensors, layer_idx),
            table_of(bound.spec, bound.batch),
            rows(tensors.key),
            rows(tensors.value),
            bound.batch.kvstarts,
            bound.batch.num_repeat};
}

abi::AttendArgs bind_attend(const BoundBatch& bound, const kvjit_tensors& tensors, std::int64_t layer_idx,
                            float* partials) {
    abi::AttendArgs args{};
    args.query = rows(tensors.query);
    args.output = rows(tensors.attn_output);
    bind_lse(tensors, args.lse, args.lse_token_stride, args.lse_head_stride);
    args.cache = gen::has_cache(bound.spec) ? bind_cache(bound.spec, tensors, layer_idx) : bind_dense(tensors);
    args.table = table_of(bound.spec, bound.batch);
    args.seqstarts = bound.batch.seqstarts;
    args.kvstarts = bound.batch.kvstarts;
    bind_mask(tensors.attn_mask, args);
    args.slopes = bound.slopes.data();
    args.partials = partials;
    args.num_kv_heads = bound.num_kv_heads;
    args.decoding_batches = bound.batch.decoding_batches;
    args.softmax_scale = bound.softmax_scale;
    return args;
}

abi::MergeArgs bind_split_merge(const kvjit_tensors& tensors, const float* partials) {
    abi::MergeArgs args = merge_output(tensors);
    args.acc = reinterpret_cast<const char*>(partials);
    args.max = partials;
    args.sum = partials + 1;
    return args;
}

abi::MergeArgs bind_merge(const kvjit_tensors& tensors, std::vector<abi::MergeItem>& items) {
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
    abi::MergeArgs args = merge_output(tensors);
    args.acc = bytes(output);
    args.max = static_cast<const float*>(lse.data);
    return args;
}

}  // namespace kvjit::rt
