// The four operations of blocks.h: check, then move.
#pragma once

#include "generator/error.h"
#include "kvjit/blocks.h"

namespace kvjit::rt {

/// See blocks.h. `options` has this version's size, and so has its executor.
gen::Result<void> copy_blocks(const kvjit_blocks* from, const kvjit_blocks* to, const std::int64_t* from_ids,
                              const std::int64_t* to_ids, std::int64_t count, const kvjit_blocks_options& options);
gen::Result<void> move_blocks(const kvjit_blocks* blocks, const std::int64_t* from_ids, const std::int64_t* to_ids,
                              std::int64_t count, const kvjit_blocks_options& options);
gen::Result<void> swap_blocks(const kvjit_blocks* a, const kvjit_blocks* b, const std::int64_t* a_ids,
                              const std::int64_t* b_ids, std::int64_t count, const kvjit_blocks_options& options);
gen::Result<void> zero_blocks(const kvjit_blocks* blocks, const std::int64_t* ids, std::int64_t count,
                              const kvjit_blocks_options& options);

}  // namespace kvjit::rt
