// kvjit for C++17: blocks.h, which documents what everything does, with Results. Header-only.
#pragma once

#include "kvjit/blocks.h"
#include "kvjit/kvjit.hpp"

namespace kvjit {

/// A cache whose blocks are handled as they are. The three are not copied: they outlive it. See kvjit_blocks.
struct Blocks : kvjit_blocks {
    Blocks(const kvjit_spec& of, const kvjit_batch& sizes, const kvjit_tensors& views,
           kvjit_memory lies = KVJIT_MEMORY_HOST) {
        kvjit_blocks_init(this);
        spec = &of;
        batch = &sizes;
        tensors = &views;
        memory = lies;
    }
};

struct BlocksOptions : kvjit_blocks_options {
    BlocksOptions() { kvjit_blocks_options_init(this); }
};

/// See kvjit_blocks_copy.
inline Result<void> copy_blocks(const kvjit_blocks& from, const kvjit_blocks& to, const std::int64_t* from_ids,
                                const std::int64_t* to_ids, std::int64_t count,
                                const kvjit_blocks_options& options = BlocksOptions()) {
    auto done = detail::call(kvjit_blocks_copy, &from, &to, from_ids, to_ids, count, &options);
    return detail::explain(std::move(done), from.tensors, to.tensors);
}

/// See kvjit_blocks_move.
inline Result<void> move_blocks(const kvjit_blocks& blocks, const std::int64_t* from_ids, const std::int64_t* to_ids,
                                std::int64_t count, const kvjit_blocks_options& options = BlocksOptions()) {
    auto done = detail::call(kvjit_blocks_move, &blocks, from_ids, to_ids, count, &options);
    return detail::explain(std::move(done), blocks.tensors);
}

/// See kvjit_blocks_swap.
inline Result<void> swap_blocks(const kvjit_blocks& a, const kvjit_blocks& b, const std::int64_t* a_ids,
                                const std::int64_t* b_ids, std::int64_t count,
                                const kvjit_blocks_options& options = BlocksOptions()) {
    auto done = detail::call(kvjit_blocks_swap, &a, &b, a_ids, b_ids, count, &options);
    return detail::explain(std::move(done), a.tensors, b.tensors);
}

/// See kvjit_blocks_zero.
inline Result<void> zero_blocks(const kvjit_blocks& blocks, const std::int64_t* ids, std::int64_t count,
                                const kvjit_blocks_options& options = BlocksOptions()) {
    auto done = detail::call(kvjit_blocks_zero, &blocks, ids, count, &options);
    return detail::explain(std::move(done), blocks.tensors);
}

}  // namespace kvjit
