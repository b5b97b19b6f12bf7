// The ids of a call: each leads to a block, and those that are written are apart from all others.
#pragma once

#include <span>

#include "blocks/cache.h"

namespace kvjit::rt {

/// What a call does with the blocks that an array names.
enum class BlockUse { kRead, kWritten };

struct BlockIds {
    std::string_view name;  // of the array: "from_ids"
    const BlockCache* cache;
    BlockUse use;
    std::span<const std::int64_t> codes;   // or the ids of whole blocks
    std::span<const std::int64_t> scales;  // where they have ids of their own

    /// Of a share of the block.
    std::span<const std::int64_t> of(const BlockPlane& plane) const {
        return plane.scales && !scales.empty() ? scales : codes;
    }
};

/// The caller's array. Errors: KVJIT_BAD_ARGUMENT, where it is null or misaligned; KVJIT_BAD_INDEX, where an id leads
/// to no block. O(count).
gen::Result<BlockIds> read_ids(const BlockCache& cache, BlockUse use, const std::int64_t* ids, std::int64_t count,
                               std::string_view name);

/// Arrays of ids of one cache. A block that is written overlaps no other of the call; where `in_order`, it may be the
/// same as one that is read. Errors: KVJIT_BAD_INDEX. O(count log count).
gen::Result<void> check_apart(std::span<const BlockIds> arrays, bool in_order);

}  // namespace kvjit::rt
