// Where a batch's keys and values lie, computed once from spec and batch: for the checks, the binding and the launches.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/abi.h"
#include "common/batch_rules.h"
#include "generator/spec.h"

namespace kvjit::rt {

/// Axes of one layer's table, cachestarts: 2 for rows of entries without CSR. One more axis means a table a layer.
int table_rank(const gen::KernelSpec& spec, const kvjit_batch& batch);
bool has_layer_tables(const gen::KernelSpec& spec, const kvjit_batch& batch);

/// A cache and its table; or packed keys and values, whose table is kvstarts. The batch's arrays outlive it.
class CacheView {
public:
    /// Precondition: the batch has passed check_batch_scalars. Reads no array.
    CacheView(const gen::KernelSpec& spec, const kvjit_batch& batch, std::int64_t num_kv_heads);

    /// Tokens of an entry of the table, and the kind of the entries.
    Paging paging() const { return paging_; }
    /// The table of a layer.
    abi::Table table(std::int64_t layer) const;
    /// Whether layers have tables of their own, and by how many entries these lie apart.
    bool has_layers() const { return has_layers_; }
    std::int64_t layer_entries() const { return layer_entries_; }
    /// The number of slots that entries index, tokens or blocks; kNoLimit for addresses and for packed keys and values.
    std::int64_t num_slots() const { return num_slots_; }
    /// Tokens of a block; 0 where entries are tokens.
    std::int64_t block_tokens() const { return paging_.blocks() ? page_tokens_ : 0; }
    /// The blocks that addresses point to. Scale blocks of a cache without scales have 0 bytes.
    abi::BlockMemory code_blocks() const;
    abi::BlockMemory scale_blocks() const;
    /// These blocks, which no tensor of the call describes, as tensors at address 0.
    const kvjit_tensor& code_block() const { return code_block_; }
    const kvjit_tensor& scale_block() const { return scale_block_; }
    /// The layout's axes, parsed once: of keys (part 0) and of values (part 1), which may be the same.
    const gen::Axes& axes(int part) const { return part == 0 ? key_axes_ : value_axes_; }
    /// Whether keys and values lie in tensors of their own.
    bool is_apart() const { return apart_; }
    /// Extent of a layout's axis in a tensor whose rows have `row_elements`.
    std::int64_t extent(const gen::Axes& axes, char axis, std::int64_t row_elements) const;
    /// The layers that a call may name.
    std::int64_t num_layers() const { return num_layers_; }

    /// Keys and values of one layer, with their scales.
    abi::Cache planes(const kvjit_tensors& tensors, std::int64_t layer) const;
    /// Strides between the pieces of keys and of values, where the layout splits their rows or pages.
    struct CachePieces {
        abi::Pieces key, value;
    };
    CachePieces pieces(const kvjit_tensors& tensors) const;

private:
    /// Indices of the axes in a layout, -1: absent. `token` is the axis within a piece where pages are split.
    struct Places {
        std::int32_t block, token, layer, part, head;
        std::int32_t token_pieces, element_pieces;  // -1: not split
    };
    static Places places(const gen::KernelSpec& spec, const gen::Axes& axes, int part);

    kvjit_tensor block(kvjit_dtype type, std::int64_t row_elements) const;
    /// The tensor with the keys (part 0) or values (part 1) of all layers.
    const kvjit_tensor& codes(const kvjit_tensors& tensors, int part) const;
    const kvjit_tensor& scales(const kvjit_tensors& tensors, int part) const;
    abi::Plane plane(const kvjit_tensor& tensor, const Places& at, std::int64_t layer, std::int64_t part) const;

    bool cached_, quantised_, apart_;
    gen::Axes key_axes_, value_axes_;
    Paging paging_;
    abi::Table table_;  // of layer 0
    bool has_layers_;
    std::int64_t layer_entries_, index_bytes_;
    std::int64_t num_slots_, page_tokens_, num_layers_, num_kv_heads_;
    Places key_at_, value_at_;
    kvjit_tensor code_block_{}, scale_block_{};
};

}  // namespace kvjit::rt
