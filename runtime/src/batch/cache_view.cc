#include "batch/cache_view.h"

#include "batch/batch_view.h"

namespace kvjit::rt {
namespace {

bool has_rows(const gen::KernelSpec& spec, const kvjit_batch& batch) {
    return gen::is_paged(spec) && batch.rowstarts == nullptr;
}

abi::Table table_of(const gen::KernelSpec& spec, const kvjit_batch& batch) {
    const abi::Indices kvstarts = indices(spec, batch.kvstarts);
    if (!gen::has_cache(spec)) return {batch.kvstarts, nullptr, {}, {}, 1};
    const kvjit_tensor& entries = batch.cachestarts;
    if (spec.cache_mode == KVJIT_TOKEN_TABLE) return {entries.data, nullptr, kvstarts, {}, 0};
    return {entries.data, batch.scalestarts.data, indices(spec, batch.rowstarts), indices(spec, batch.row_index),
            entries.rank == 0 ? 0 : entries.strides[entries.rank - table_rank(spec, batch)]};
}

std::int64_t stride(const kvjit_tensor& tensor, std::int32_t axis) {
    return axis < 0 ? 0 : tensor.strides[axis] * element_bytes(tensor);
}

/// Packed keys or values: sequence b's positions begin at token kvstarts[b].
abi::Plane packed(const kvjit_tensor& tensor) {
    return {static_cast<char*>(tensor.data), stride(tensor, 0), stride(tensor, 0), stride(tensor, 1)};
}

/// The memory of a dense block.
abi::BlockMemory block_memory(const kvjit_tensor& block) {
    return {element_bytes(block), block.shape[0] * block.strides[0] * element_bytes(block)};
}

}  // namespace

int table_rank(const gen::KernelSpec& spec, const kvjit_batch& batch) {
    return has_rows(spec, batch) ? 2 : 1;
}

bool has_layer_tables(const gen::KernelSpec& spec, const kvjit_batch& batch) {
    return gen::has_cache(spec) && batch.cachestarts.rank == table_rank(spec, batch) + 1;
}

CacheView::Places CacheView::places(const gen::KernelSpec& spec, const gen::Axes& axes, int part) {
    const gen::Cut cut = gen::cut_of(spec, part), whole = gen::whole(spec);
    return {.block = axes.find('N'),
            .token = axes.find(axes.has('t') ? 't' : 'T'),
            .layer = axes.find('L'),
            .part = axes.find('2'),
            .head = axes.find('H'),
            .token_pieces = cut.tokens == whole.tokens ? -1 : axes.find('T'),
            .element_pieces = cut.elements == whole.elements ? -1 : axes.find('D')};
}

CacheView::CacheView(const gen::KernelSpec& spec, const kvjit_batch& batch, std::int64_t num_kv_heads)
    : cached_(gen::has_cache(spec)),
      quantised_(cached_ && spec.quant_bit != 0),
      apart_(gen::is_apart(spec)),
      key_axes_(gen::axes_of(gen::layout_axes(spec))),
      value_axes_(gen::axes_of(gen::value_axes(spec))),
      paging_{gen::page_tokens(spec), gen::table_entries(spec)},
      table_(table_of(spec, batch)),
      has_layers_(has_layer_tables(spec, batch)),
      layer_entries_(has_layers_ ? batch.cachestarts.strides[0] : 0),
      index_bytes_(gen::dtype_bytes(static_cast<kvjit_dtype>(spec.index_type))),
      num_slots_(gen::has_num_blocks(spec)   ? batch.num_blocks
                 : gen::has_max_tokens(spec) ? batch.max_tokens
                                             : abi::kNoLimit),
      page_tokens_(paging_.blocks() && paging_.page != 0 ? paging_.page : batch.max_tokens),
      num_layers_(batch.num_layers),
      num_kv_heads_(num_kv_heads),
      key_at_(places(spec, key_axes_, 0)),
      value_at_(apart_ ? places(spec, value_axes_, 1) : key_at_) {
    if (paging_.entries != Entries::kAddresses) return;
    code_block_ = block(gen::cache_type(spec), gen::code_elements(spec));
    if (quantised_) scale_block_ = block(gen::scale_type(spec), gen::scale_elements(spec));
}

abi::Table CacheView::table(std::int64_t layer) const {
    const auto from = [&](const void* entries) -> const void* {
        return entries == nullptr ? nullptr : static_cast<const char*>(entries) + layer * layer_entries_ * index_bytes_;
    };
    abi::Table table = table_;
    table.entries = from(table_.entries);
    table.scales = from(table_.scales);
    return table;
}

std::int64_t CacheView::extent(const gen::Axes& axes, char axis, std::int64_t row_elements) const {
    switch (axis) {
        case 'N':
            return num_slots_;
        case 'T':
            return axes.has('t') ? page_tokens_ / axes.extent('t') : page_tokens_;
        case 'L':
            return num_layers_;
        case '2':
            return 2;
        case 'H':
            return num_kv_heads_;
        case 'D':
            return axes.has('d') ? row_elements / axes.extent('d') : row_elements;
        default:
            return axes.extent(axis);
    }
}

kvjit_tensor CacheView::block(kvjit_dtype type, std::int64_t row_elements) const {
    kvjit_tensor tensor{};
    tensor.dtype = type;
    tensor.rank = key_axes_.rank;
    std::int64_t stride = 1;
    for (std::int32_t axis = tensor.rank; axis-- > 0;) {
        tensor.shape[axis] = extent(key_axes_, key_axes_.order()[static_cast<std::size_t>(axis)], row_elements);
        tensor.strides[axis] = stride;
        stride *= tensor.shape[axis];
    }
    return tensor;
}

abi::BlockMemory CacheView::code_blocks() const {
    if (paging_.entries != Entries::kAddresses) return {};
    return block_memory(code_block_);
}

abi::BlockMemory CacheView::scale_blocks() const {
    if (paging_.entries != Entries::kAddresses || !quantised_) return {};
    return block_memory(scale_block_);
}

/// Keys (part 0) or values (part 1). Where entries are tokens, an entry's stride is a token's. A block's address 0 is a
/// number like any other here: sums with it are not pointers.
abi::Plane CacheView::plane(const kvjit_tensor& tensor, const Places& at, std::int64_t layer, std::int64_t part) const {
    const std::int64_t begin = layer * stride(tensor, at.layer) + part * stride(tensor, at.part);
    char* base = reinterpret_cast<char*>(reinterpret_cast<std::intptr_t>(tensor.data) + begin);
    const std::int64_t token = stride(tensor, at.token);
    std::int64_t page = token;
    if (paging_.entries == Entries::kBlocks) page = stride(tensor, at.block);
    if (paging_.entries == Entries::kAddresses) page = 1;
    return {base, page, token, stride(tensor, at.head)};
}

const kvjit_tensor& CacheView::codes(const kvjit_tensors& tensors, int part) const {
    if (paging_.entries == Entries::kAddresses) return code_block_;
    if (!apart_) return tensors.cache;
    return part == 0 ? tensors.key_cache : tensors.value_cache;
}

const kvjit_tensor& CacheView::scales(const kvjit_tensors& tensors, int part) const {
    if (paging_.entries == Entries::kAddresses) return scale_block_;
    if (!apart_) return tensors.scale;
    return part == 0 ? tensors.key_scale : tensors.value_scale;
}

abi::Cache CacheView::planes(const kvjit_tensors& tensors, std::int64_t layer) const {
    if (!cached_) return {packed(tensors.key), packed(tensors.value), {}, {}};
    abi::Cache cache{};
    cache.key = plane(codes(tensors, 0), key_at_, layer, 0);
    cache.value = plane(codes(tensors, 1), value_at_, layer, 1);
    if (!quantised_) return cache;
    cache.key_scale = plane(scales(tensors, 0), key_at_, layer, 0);
    cache.value_scale = plane(scales(tensors, 1), value_at_, layer, 1);
    return cache;
}

CacheView::CachePieces CacheView::pieces(const kvjit_tensors& tensors) const {
    const auto of = [&](int part, const Places& at) {
        const kvjit_tensor& tensor = codes(tensors, part);
        return abi::Pieces{stride(tensor, at.element_pieces), stride(tensor, at.token_pieces)};
    };
    return {of(0, key_at_), of(1, value_at_)};
}

}  // namespace kvjit::rt
