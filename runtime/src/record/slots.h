// The slots or blocks of a cache that one call refers to, and the numbers that a recording gives them.
#pragma once

#include <cstdint>
#include <vector>

#include "record/host_batch.h"

namespace kvjit::rt {

/// The slots, or the blocks, of a cache in the order that the recording has them; and its arrays.
struct SlotUse {
    bool renumbered = false;            // else slots keep their numbers
    std::vector<std::int64_t> places;   // of the caller's slots, blocks or addresses; -1: not referred to
    std::vector<std::int64_t> scales;   // addresses of scale blocks, where these have some of their own
    std::int64_t block_tokens = 0;      // of a block of sequence_table
    std::vector<std::int64_t> entries;  // cachestarts
    std::vector<std::int64_t> scale_entries;
    std::vector<std::int64_t> store_slots;
};

/// Precondition: the batch has passed check_batch at KVJIT_CHECK_FULL, its spec has a cache. `stores`: whether the run
/// may store.
SlotUse find_slots(const HostBatch& host, bool stores);

}  // namespace kvjit::rt
