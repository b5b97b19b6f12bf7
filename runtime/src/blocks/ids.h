// The ids of a call: each must name a block, and those that are written must not overlap any others.
#pragma once

#include <span>

#include "blocks/cache.h"

namespace kvjit::rt {

/// What a call does with the blocks that an array names.
enum class BlockUse { kRead, kWritten };

struct BlockIds {
    std::string_view name;  // the array's: "from_ids"
    const BlockCache* cache;
    BlockUse use;
    std::span<const std::int64_t> codes;   // the ids of codes, or of whole blocks
    std::span<const std::int64_t> scales;  // the ids of scales, where they have their own

    /// The ids of the plane's blocks.
    std::span<const std::int64_t> of(const BlockPlane& plane) const {
        return plane.scales && !scales.empty() ? scales : codes;
    }
};

/// Reads the caller's array. Errors: KVJIT_BAD_ARGUMENT where it is null or misaligned; KVJIT_BAD_INDEX where an id
/// names no block. O(count).
gen::Result<BlockIds> read_ids(const BlockCache& cache, BlockUse use, const std::int64_t* ids, std::int64_t count,
                               std::string_view name);

/// Checks arrays of ids of one cache. A block that is written must overlap no other of the call; with `in_order`, it
/// may equal one that is read. Errors: KVJIT_BAD_INDEX. O(count log count).
gen::Result<void> check_apart(std::span<const BlockIds> arrays, bool in_order);

}  // namespace kvjit::rt
