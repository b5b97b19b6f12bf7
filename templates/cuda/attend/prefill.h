// attend for many query rows (docs/semantics.md, section 3). Arithmetic bounds it: a block has a tile of rows, and
// passes over all keys that they see. Where a call has few tiles, several blocks share the keys of one. This file is
// common to dot products and tensor cores.
//
// An entry file passes an Algorithm to attend_block:
//     kShape                        the LaunchShape of its blocks
//     attend(const AttendWork&)     attends a tile of rows and a split of its keys, and writes or merges the result
//                                   (finish_rows); the block calls it together
#pragma once

#include "common/abi.h"
#include "common/spec_block.h"
#include "cuda/attend/split.h"
#include "cuda/attend/work.h"
#include "cuda/shape.h"

namespace kvjit {

// ---- Work split: tiles of rows of all sequences, the last ones, which see most keys, first -------------------------

/// Number of sequence b's first tile of kRows rows; its tiles all come before sequence b+1's first (prefill_tiles).
template <int kRows>
KVJIT_INLINE i64 first_tile(const abi::AttendArgs& args, i64 b) {
    return prefill_tiles(index_at(args.seqstarts, b), b, kGroup, kRows);
}

/// What a block does.
struct PrefillBlock {
    i64 sequence, kv_head;
    CallSequence call;
    i64 row_begin, row_end;
    Split split;

    KVJIT_INLINE AttendWork work(const abi::AttendArgs& args) const {
        return {args, call, table_row(args.table, sequence), kv_head, row_begin, row_end, split.keys, split.of_tile};
    }
};

/// x, y: of the block in the grid. False: the block has nothing to do.
template <int kRows>
KVJIT_INLINE bool find_block(PrefillBlock& block, const abi::CudaAttendArgs& args, i64 x, i64 y) {
    const abi::AttendArgs& attend = args.attend;
    const i64 tile = first_tile<kRows>(attend, args.launch.batch_size) - 1 - x;
    if (tile < 0) return false;
    const i64 b = find_sequence(args.launch.batch_size, tile, [&](i64 s) { return first_tile<kRows>(attend, s); });
    const u32 heads = static_cast<u32>(args.launch.num_kv_heads), number = static_cast<u32>(y) / heads;
    block.sequence = b;
    block.kv_head = static_cast<u32>(y) % heads;
    block.call = sequence_of(attend, b);
    const i64 rows = block.call.tokens * kGroup;
    block.row_begin = (tile - first_tile<kRows>(attend, b)) * kRows;
    if (block.call.tokens <= kDecodeTokens || block.row_begin >= rows) return false;
    block.row_end = block.row_begin + kRows < rows ? block.row_begin + kRows : rows;
    block.split = split_of<kRows>(args, tile * heads + block.kv_head, number,
                                  seen_by_rows(block.call, block.row_begin, block.row_end));
    return number < block.split.of_tile.used;
}

template <class Algorithm>
KVJIT_INLINE void attend_block(const abi::CudaAttendArgs& args) {
    constexpr int kRows = Algorithm::kShape.rows;
    static_assert(Algorithm::kShape.shared_bytes <= kMaxSharedBytes);
    PrefillBlock block;
    if (is_faulty(args.launch) || !find_block<kRows>(block, args, block_x(), block_y())) return;
    Algorithm::attend(block.work(args.attend));
}

}  // namespace kvjit
