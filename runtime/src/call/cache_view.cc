#include "call/cache_view.h"

#include "call/batch_view.h"

namespace kvjit::rt {
namespace {

Paging paging_of(const gen::KernelSpec& spec) {
    if (!gen::has_cache(spec) || spec.cache_mode == KVJIT_OFFSET) return {0, false};
    return {gen::is_paged(spec) ? spec.page_size : 1, spec.cache_mode == KVJIT_BLOCK_TABLE};
}

abi::Table table_of(const gen::KernelSpec& spec, const kvjit_batch& batch) {
    const abi::Indices kvstarts = indices(spec, batch.kvstarts);
    if (!gen::has_cache(spec)) return {batch.kvstarts, nullptr, {}, {}, 1};
    const kvjit_tensor& entries = batch.cachestarts;
    if (spec.cache_mode == KVJIT_TOKEN_TABLE) return {entries.data, nullptr, kvstarts, {}, 0};
    return {entries.data, nullptr, indices(spec, batch.rowstarts), indices(spec, batch.row_index), entries.strides[0]};
}

int place(const gen::KernelSpec& spec, char axis) {
    const std::size_t at = gen::layout_axes(spec).find(axis);
    return at == std::string_view::npos ? -1 : static_cast<int>(at);
}

std::int64_t stride(const kvjit_tensor& tensor, int axis) {
    return axis < 0 ? 0 : tensor.strides[axis] * element_bytes(tensor);
}

/// Packed keys or values: sequence b's positions begin at token kvstarts[b].
abi::Plane packed(const kvjit_tensor& tensor) {
    return {static_cast<char*>(tensor.data), stride(tensor, 0), stride(tensor, 0), stride(tensor, 1)};
}

}  // namespace

CacheView::CacheView(const gen::KernelSpec& spec, const kvjit_batch& batch, std::int64_t num_kv_heads)
    : cached_(gen::has_cache(spec)),
      quantised_(cached_ && spec.quant_bit != 0),
      paging_(paging_of(spec)),
      table_(table_of(spec, batch)),
      num_slots_(!cached_         ? abi::kNoLimit
                 : paging_.blocks ? batch.num_blocks
                                  : batch.max_tokens),
      block_tokens_(paging_.blocks ? spec.page_size : batch.max_tokens),
      num_layers_(batch.num_layers),
      num_kv_heads_(num_kv_heads),
      at_{place(spec, 'N'), place(spec, 'T'), place(spec, 'L'), place(spec, '2'), place(spec, 'H')} {}

std::int64_t CacheView::extent(char axis) const {
    switch (axis) {
        case 'N':
            return num_slots_;
        case 'T':
            return block_tokens_;
        case 'L':
            return num_layers_;
        case '2':
            return 2;
        default:
            return num_kv_heads_;
    }
}

/// Key (part 0) or value (part 1). Where entries are tokens, an entry's stride is a token's.
abi::Plane CacheView::plane(const kvjit_tensor& tensor, std::int64_t layer, std::int64_t part) const {
    char* base = static_cast<char*>(tensor.data);
    if (base != nullptr) base += layer * stride(tensor, at_.layer) + part * stride(tensor, at_.part);
    const std::int64_t token = stride(tensor, at_.token);
    return {base, paging_.blocks ? stride(tensor, at_.block) : token, token, stride(tensor, at_.head)};
}

abi::Cache CacheView::planes(const kvjit_tensors& tensors, std::int64_t layer) const {
    if (!cached_) return {packed(tensors.key), packed(tensors.value), {}, {}};
    abi::Cache cache{plane(tensors.cache, layer, 0), plane(tensors.cache, layer, 1), {}, {}};
    if (quantised_) {
        cache.key_scale = plane(tensors.scale, layer, 0);
        cache.value_scale = plane(tensors.scale, layer, 1);
    }
    return cache;
}

}  // namespace kvjit::rt
