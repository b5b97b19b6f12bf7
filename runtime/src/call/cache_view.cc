#include "call/cache_view.h"

#include <charconv>
#include <tuple>
#include <utility>

#include "call/batch_view.h"

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

/// Where the axis behind the one at `at` stands: letters have numbers where they are inner parts of split axes.
std::size_t next_axis(std::string_view layout, std::size_t at) {
    const bool inner = layout[at] == 'd' || layout[at] == 't';
    for (++at; inner && at < layout.size() && layout[at] >= '0' && layout[at] <= '9';) ++at;
    return at;
}

/// Elements, or tokens, of one piece of an axis whose inner part is `letter`; 1 where it isn't split.
std::int64_t inner_extent(std::string_view layout, char letter) {
    const std::size_t at = layout.find(letter);
    if (at == std::string_view::npos) return 1;
    std::int64_t extent = 0;
    std::from_chars(layout.data() + at + 1, layout.data() + layout.size(), extent);
    return extent;
}

std::int64_t stride(const kvjit_tensor& tensor, int axis) {
    return axis < 0 ? 0 : tensor.strides[axis] * element_bytes(tensor);
}

/// Packed keys or values: sequence b's positions begin at token kvstarts[b].
abi::Plane packed(const kvjit_tensor& tensor) {
    return {static_cast<char*>(tensor.data), stride(tensor, 0), stride(tensor, 0), stride(tensor, 1)};
}

/// Of a dense block.
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

CacheView::Places CacheView::places(std::string_view axes) {
    Places at{-1, -1, -1, -1, -1};
    int axis = 0;
    for (const char letter : axes) {
        if (letter == 'N') at.block = axis;
        if (letter == 'T') at.token = axis;
        if (letter == 'L') at.layer = axis;
        if (letter == '2') at.part = axis;
        if (letter == 'H') at.head = axis;
        ++axis;
    }
    return at;
}

CacheView::CacheView(const gen::KernelSpec& spec, const kvjit_batch& batch, std::int64_t num_kv_heads)
    : spec_(spec),
      cached_(gen::has_cache(spec)),
      quantised_(cached_ && spec.quant_bit != 0),
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
      key_at_(places(gen::layout_axes(spec))),
      value_at_(gen::is_apart(spec) ? places(gen::value_axes(spec)) : key_at_) {}

abi::Table CacheView::table(std::int64_t layer) const {
    const auto from = [&](const void* entries) -> const void* {
        return entries == nullptr ? nullptr : static_cast<const char*>(entries) + layer * layer_entries_ * index_bytes_;
    };
    abi::Table table = table_;
    table.entries = from(table_.entries);
    table.scales = from(table_.scales);
    return table;
}

std::int64_t CacheView::extent(char axis) const {
    switch (axis) {
        case 'N':
            return num_slots_;
        case 'T':
            return page_tokens_;
        case 'L':
            return num_layers_;
        case '2':
            return 2;
        default:
            return num_kv_heads_;
    }
}

CacheAxes CacheView::axes(std::string_view layout, std::int64_t row_elements) const {
    const std::int64_t element_pieces = inner_extent(layout, 'd'), token_pieces = inner_extent(layout, 't');
    const auto extent_of = [&](char letter) {
        switch (letter) {
            case 'D':
                return row_elements / element_pieces;
            case 'd':
                return element_pieces;
            case 't':
                return token_pieces;
            case 'T':
                return page_tokens_ / token_pieces;
            default:
                return extent(letter);
        }
    };
    CacheAxes axes{};
    for (std::size_t at = 0; at < layout.size(); at = next_axis(layout, at)) {
        axes.axes[static_cast<std::size_t>(axes.count++)] = {layout[at], extent_of(layout[at])};
    }
    return axes;
}

kvjit_tensor CacheView::block(kvjit_dtype type, std::int64_t row_elements) const {
    const CacheAxes all = axes(gen::layout_axes(spec_), row_elements);
    kvjit_tensor tensor{};
    tensor.dtype = type;
    tensor.rank = all.count;
    std::int64_t stride = 1;
    for (std::int32_t axis = tensor.rank; axis-- > 0;) {
        tensor.shape[axis] = all.axes[static_cast<std::size_t>(axis)].extent;
        tensor.strides[axis] = stride;
        stride *= tensor.shape[axis];
    }
    return tensor;
}

kvjit_tensor CacheView::code_block() const {
    return block(gen::cache_type(spec_), gen::code_elements(spec_));
}
kvjit_tensor CacheView::scale_block() const {
    return block(gen::scale_type(spec_), gen::scale_elements(spec_));
}

abi::BlockMemory CacheView::code_blocks() const {
    if (paging_.entries != Entries::kAddresses) return {};
    return block_memory(code_block());
}

abi::BlockMemory CacheView::scale_blocks() const {
    if (paging_.entries != Entries::kAddresses || !quantised_) return {};
    return block_memory(scale_block());
}

/// Key (part 0) or value (part 1). Where entries are tokens, an entry's stride is a token's. A block's address 0 is a
/// number like any other here: sums with it are no pointers.
abi::Plane CacheView::plane(const kvjit_tensor& tensor, const Places& at, std::int64_t layer, std::int64_t part) const {
    const std::int64_t begin = layer * stride(tensor, at.layer) + part * stride(tensor, at.part);
    char* base = reinterpret_cast<char*>(reinterpret_cast<std::intptr_t>(tensor.data) + begin);
    const std::int64_t token = stride(tensor, at.token);
    std::int64_t page = token;
    if (paging_.entries == Entries::kBlocks) page = stride(tensor, at.block);
    if (paging_.entries == Entries::kAddresses) page = 1;
    return {base, page, token, stride(tensor, at.head)};
}

abi::Cache CacheView::planes(const kvjit_tensors& tensors, std::int64_t layer) const {
    if (!cached_) return {packed(tensors.key), packed(tensors.value), {}, {}};
    const auto both = [&](const kvjit_tensor& key, const kvjit_tensor& value) {
        return std::pair(plane(key, key_at_, layer, 0), plane(value, value_at_, layer, 1));
    };
    abi::Cache cache{};
    if (paging_.entries == Entries::kAddresses) {
        std::tie(cache.key, cache.value) = both(code_block(), code_block());
        if (quantised_) std::tie(cache.key_scale, cache.value_scale) = both(scale_block(), scale_block());
        return cache;
    }
    const bool apart = gen::is_apart(spec_);
    std::tie(cache.key, cache.value) =
        apart ? both(tensors.key_cache, tensors.value_cache) : both(tensors.cache, tensors.cache);
    if (quantised_)
        std::tie(cache.key_scale, cache.value_scale) =
            apart ? both(tensors.key_scale, tensors.value_scale) : both(tensors.scale, tensors.scale);
    return cache;
}

}  // namespace kvjit::rt
