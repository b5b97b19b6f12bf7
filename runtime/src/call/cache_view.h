// Where a batch's keys and values lie, made once from spec and batch: for the checks, the binding and the launches.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "common/abi.h"
#include "common/batch_rules.h"
#include "generator/spec.h"

namespace kvjit::rt {

/// Axes of a layer's table, cachestarts: rows of entries where it isn't CSR. With one axis more it has a table a layer.
int table_rank(const gen::KernelSpec& spec, const kvjit_batch& batch);
bool has_layer_tables(const gen::KernelSpec& spec, const kvjit_batch& batch);

/// The axes of a cache's tensor, or of a block of it, outermost first. Of D that is split into
/// pieces, D counts these, and d the elements of one; so do T and t.
struct CacheAxes {
    struct Axis {
        char letter;
        std::int64_t extent;
    };
    std::array<Axis, KVJIT_MAX_RANK> axes;
    std::int32_t count = 0;

    const Axis* begin() const { return axes.data(); }
    const Axis* end() const { return axes.data() + count; }
};

/// Of a cache and its table; or of packed keys and values, whose table is kvstarts. The batch's arrays outlive it.
class CacheView {
public:
    /// The batch has passed check_batch_scalars. Reads no array.
    CacheView(const gen::KernelSpec& spec, const kvjit_batch& batch, std::int64_t num_kv_heads);

    /// Tokens behind an entry of the table, and what an entry is.
    Paging paging() const { return paging_; }
    /// Of a layer.
    abi::Table table(std::int64_t layer) const;
    /// Whether layers have tables of their own, and how far a layer's entries are from the next's.
    bool has_layers() const { return has_layers_; }
    std::int64_t layer_entries() const { return layer_entries_; }
    /// Extent of what entries count, the cache's tokens or blocks; kNoLimit for addresses, and packed keys and values.
    std::int64_t num_slots() const { return num_slots_; }
    /// Tokens of a block; 0 where entries are tokens.
    std::int64_t block_tokens() const { return paging_.blocks() ? page_tokens_ : 0; }
    /// Where entries are addresses: of what. Scale blocks of a cache without scales have 0 bytes.
    abi::BlockMemory code_blocks() const;
    abi::BlockMemory scale_blocks() const;
    /// Extent of an axis that is not split; not of D, which depends on the tensor's type.
    std::int64_t extent(char axis) const;
    /// The axes of a layout of the cache, whose rows have so many elements. Allocates nothing.
    CacheAxes axes(std::string_view layout, std::int64_t row_elements) const;
    /// The blocks at a table's addresses, which no tensor of the call shows, as ones that lie at address 0.
    kvjit_tensor code_block() const;
    kvjit_tensor scale_block() const;
    /// The layers that a call may name.
    std::int64_t num_layers() const { return num_layers_; }

    /// Keys and values of one layer, with their scales.
    abi::Cache planes(const kvjit_tensors& tensors, std::int64_t layer) const;

private:
    /// Where axes stand in a layout, -1: nowhere.
    struct Places {
        int block, token, layer, part, head;
    };
    static Places places(std::string_view axes);

    kvjit_tensor block(kvjit_dtype type, std::int64_t row_elements) const;
    abi::Plane plane(const kvjit_tensor& tensor, const Places& at, std::int64_t layer, std::int64_t part) const;

    gen::KernelSpec spec_;
    bool cached_, quantised_;
    Paging paging_;
    abi::Table table_;  // of layer 0
    bool has_layers_;
    std::int64_t layer_entries_, index_bytes_;
    std::int64_t num_slots_, page_tokens_, num_layers_, num_kv_heads_;
    Places key_at_, value_at_;
};

}  // namespace kvjit::rt
