// attend for many query rows (docs/semantics.md, section 3). Arithmetic bounds it: a block has a tile of rows, and
// passes over all keys that they see. This file is common to dot products and tensor cores.
//
// An entry file passes an Algorithm to attend_block:
//     kShape                        the LaunchShape of its blocks
//     attend(const AttendWork&)     attends a tile of rows and all of its keys; the block calls it together
#pragma once

#include "common/abi.h"
#include "common/spec_block.h"
#include "cuda/attend/work.h"
#include "cuda/shape.h"

namespace kvjit {

// ---- Work split: tiles of rows of all sequences, the last ones, which see most keys, first -------------------------

/// Number of sequence b's first tile of kRows rows; its tiles all come before sequence b+1's first (prefill_tiles).
template <int kRows>
KVJIT_INLINE i64 first_tile(const abi::AttendArgs& args, i64 b) {
    return prefill_tiles(index_at(args.seqstarts, b), b, kGroup, kRows);
}

template <class Algorithm>
KVJIT_INLINE void attend_block(const abi::CudaAttendArgs& args) {
    constexpr int kRows = Algorithm::kShape.rows;
    static_assert(Algorithm::kShape.shared_bytes <= kMaxSharedBytes);
    if (is_faulty(args.launch)) return;
    const abi::AttendArgs& attend = args.attend;
    const i64 tile = first_tile<kRows>(attend, args.launch.batch_size) - 1 - block_x();
    if (tile < 0) return;
    const i64 b = find_sequence(args.launch.batch_size, tile, [&](i64 s) { return first_tile<kRows>(attend, s); });
    const CallSequence sequence = sequence_of(attend, b);
    const i64 rows = sequence.tokens * kGroup, row_begin = (tile - first_tile<kRows>(attend, b)) * kRows;
    if (sequence.tokens <= kDecodeTokens || row_begin >= rows) return;
    const i64 row_end = row_begin + kRows < rows ? row_begin + kRows : rows;

    const AttendWork work = {attend,
                             sequence,
                             table_row(attend.table, b),
                             block_y(),
                             row_begin,
                             row_end,
                             seen_by_rows(sequence, row_begin, row_end),
                             nullptr};
    Algorithm::attend(work);
}

}  // namespace kvjit
