// attend for few query rows (docs/semantics.md, section 3). Reading keys and values bounds it: a block reads each once
// for all of its rows, the next block, of further rows of that kv head, finds it in L2, and several blocks may share
// the keys. This file is common to dot products and tensor cores.
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

// ---- Work split: a block for each tile of rows of a sequence and kv head, and each split of their keys -------------

/// block_x() as (sequence, kv head, tile), the tile varying fastest.
struct TilePlace {
    i64 sequence, kv_head, tile;
};

KVJIT_INLINE TilePlace place_of_block(const abi::CudaAttendArgs& args) {
    const u32 tiles = static_cast<u32>(args.tiles), heads = static_cast<u32>(args.launch.num_kv_heads);
    const u32 block = static_cast<u32>(block_x()), head = block / tiles;
    return {head / heads, head % heads, block % tiles};
}

template <class Algorithm>
KVJIT_INLINE void attend_block(const abi::CudaAttendArgs& args) {
    constexpr int kRows = Algorithm::kShape.rows;
    static_assert(Algorithm::kShape.shared_bytes <= kMaxSharedBytes);
    const TilePlace place = place_of_block(args);
    if (is_faulty(args.launch) || place.sequence >= args.launch.batch_size) return;
    const CallSequence sequence = sequence_of(args.attend, place.sequence);
    const i64 rows = sequence.tokens * kGroup, row_begin = place.tile * kRows;
    if (sequence.tokens > kDecodeTokens || row_begin >= rows) return;
    const i64 row_end = row_begin + kRows < rows ? row_begin + kRows : rows;
    const i64 number = args.splits - 1 - block_y();  // the last first: only the longest sequences have those
    const Split split = split_of<kRows>(args, block_x(), number, seen_by_rows(sequence, row_begin, row_end));
    if (split.of_tile.number >= split.of_tile.used) return;
    Algorithm::attend({args.attend, sequence, table_row(args.attend.table, place.sequence), place.kv_head, row_begin,
                       row_end, split.keys, split.of_tile});
}

}  // namespace kvjit
