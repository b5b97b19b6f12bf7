// A checked kvjit_blocks: where its tensors have each block, and how a block lies in them.
#pragma once

#include <string>
#include <vector>

#include "blocks/nest.h"
#include "generator/operator.h"
#include "kvjit/blocks.h"

namespace kvjit::rt {

/// One tensor's share of a block; for blocks at addresses, the codes or the scales.
struct BlockPlane {
    std::string_view tensor;  // its name
    gen::Part part;
    bool scales;
    std::int64_t begin;   // address of block 0
    std::int64_t stride;  // bytes from an id to the next
    std::vector<BlockAxis> axes;

    std::int64_t address(std::int64_t id) const { return begin + id * stride; }
    /// Whether all blocks are the same memory, however many there are.
    bool is_same(const BlockPlane& other) const;
};

struct BlockCache {
    std::string name;  // of the caller's struct: "from"
    kvjit_memory memory;
    gen::KernelSpec spec;                // for the operator KeyValueCache
    abi::Entries entries;                // what an id is
    std::int64_t ids;                    // the number of blocks, or tokens; 0 for addresses
    std::int64_t layers, heads, tokens;  // of a block
    std::vector<BlockPlane> planes;

    bool has_addresses() const { return entries == abi::Entries::kAddresses; }
    /// Whether codes and scales have ids of their own: in a quantised cache of blocks at addresses.
    bool has_scale_ids() const { return has_addresses() && spec.quant_bit != 0; }
};

/// `written`: whether the call writes its blocks. Errors: those of kvjit_blocks_copy that concern `given` alone.
gen::Result<BlockCache> read_cache(const kvjit_blocks* given, std::string_view name, bool written);

/// One tensor of both caches, or the part of it that has a tensor of its own in one of them.
struct BlockShare {
    BlockPlane first, second;
    Nest nest;
};

/// Pairs all bytes of a block. Errors: KVJIT_BAD_ARGUMENT where the formats of the caches differ.
gen::Result<std::vector<BlockShare>> pair_caches(const BlockCache& first, const BlockCache& second);

/// Whether ids of both caches count the same blocks. Errors: KVJIT_BAD_ARGUMENT where tensors begin at one address but
/// have different shapes or strides.
gen::Result<bool> is_one_cache(const BlockCache& first, const BlockCache& second);

}  // namespace kvjit::rt
