// A tile's keys, split among blocks: each block stores a partial for its split, and the one that finishes last merges
// the partials of all splits, in ascending order, so that bits don't depend on which block that is.
#pragma once

#include "common/abi.h"
#include "cuda/attend/partial.h"
#include "cuda/attend/work.h"

namespace kvjit {

struct Split {
    TileSplits of_tile;
    KeyRange keys;
};

/// Keys of a split of `count` keys, which may be far fewer than the plan's bound.
KVJIT_INLINE u32 keys_of_split(const abi::CudaAttendArgs& args, u32 count) {
    const u32 splits = static_cast<u32>(args.splits), each = (count + splits - 1) / splits;
    const u32 least = static_cast<u32>(args.least_split);
    return each < least ? least : (each + kSplitUnit - 1) / kSplitUnit * kSplitUnit;
}

/// Split `number` of the keys `seen` by tile `tile` of kRows rows. Splits begin at multiples of kSplitUnit; of a fixed
/// size, at multiples of that. The last split takes all remaining keys.
template <int kRows>
KVJIT_INLINE Split split_of(const abi::CudaAttendArgs& args, i64 tile, i64 number, KeyRange seen) {
    const u32 fixed = static_cast<u32>(args.split_keys), unit = fixed != 0 ? fixed : kSplitUnit;
    const u32 origin = kWindow ? static_cast<u32>(seen.begin) / unit * unit : 0;
    const u32 count = static_cast<u32>(seen.end) - origin, keys = fixed != 0 ? fixed : keys_of_split(args, count);
    const i64 needed = (count + keys - 1) / keys;
    const i64 used = needed < 1 ? 1 : needed < args.splits ? needed : args.splits;
    const i64 begin = origin + number * keys, end = number == used - 1 ? seen.end : begin + keys;
    float* partials = args.attend.partials + tile * args.splits * (kRows * kPartialStride);
    return {{number, used, used > 1 ? partials : nullptr, args.counters + tile},
            {kWindow && begin < seen.begin ? seen.begin : begin, end}};
}

// ---- Merge ---------------------------------------------------------------------------------------------------------

/// Whether this block is the last of its tile's to call it; it then sees the others' partials. The block calls it
/// together, after writing its own; shared memory is overwritten. The last block sets the tile's counter back to 0.
KVJIT_INLINE bool is_last_block(const TileSplits& splits) {
    u32& arrived = shared_memory<u32>();
    barrier();
    if (opaque(thread_index()) == 0) {
        thread_fence();  // orders the block's partials, which the barrier above has gathered, before the count
        arrived = atomic_add(splits.counter, 1);
        thread_fence();  // orders the count before reads of the others' partials past the barrier below
    }
    barrier();
    if (arrived != static_cast<u32>(splits.used - 1)) return false;
    if (opaque(thread_index()) == 0) *splits.counter = 0;
    return true;
}

/// Parts of a tile's rows, of kHeadDim sums of values each. Strides are in floats.
struct RowParts {
    i64 count;
    const float* sums;     // of part 0 and the tile's first row
    const float* running;  // max and sum of that
    i64 part_stride, row_stride;

    KVJIT_INLINE const float* row(i64 part, i64 r) const { return sums + part * part_stride + r * row_stride; }
    KVJIT_INLINE Running state(i64 part, i64 r) const {
        const float* at = running + part * part_stride + r * row_stride;
        return {at[0], at[1]};
    }
};

/// The partials of all splits, as parts of the tile's rows.
template <int kRows>
KVJIT_INLINE RowParts partials_of(const TileSplits& splits) {
    return {splits.used, splits.partials, splits.partials + kHeadDim, kRows * kPartialStride, kPartialStride};
}

/// Joins the parts of the tile's rows, each warp one row after the other, and writes the rows: their partials to `to`,
/// or, if that is null, the output.
template <int kWarps>
KVJIT_INLINE void join_parts(const AttendWork& work, const RowParts& parts, float* to) {
#pragma unroll 1
    for (i32 r = later_warp(); work.row_begin + r < work.row_end; r += kWarps) {
        RowLanes acc;
        const Running running = merge_parts(
            acc, parts.count, [&](i64 part) { return parts.state(part, r); },
            [&](i64 part) { return parts.row(part, r); });
        emit_row(work, work.row_begin + r, to ? to + r * kPartialStride : nullptr, acc, running);
    }
}

/// Calls f(row, piece) for all pieces of the tile's rows, whose elements f sets: the block takes as many at a time as
/// it has threads for. (A warp that takes one row after the other waits so long for each that it takes a fifth of the
/// time of a tile with 2048 keys.)
template <int kWarps, class F>
KVJIT_INLINE void for_each_piece(const AttendWork& work, F&& f) {
    constexpr i32 kOfRow = kHeadDim / RowPiece::kElements;
    const i32 pieces = static_cast<i32>(work.row_end - work.row_begin) * kOfRow;
    // With later_warp() in it ptxas spills nothing in the loop over tiles on sm_90a; with the thread's index it did.
#pragma unroll 1
    for (i32 at = later_warp() * kWarpSize + later_lane(); at < pieces; at += kWarps * kWarpSize) {
        RowPiece piece = {at % kOfRow * RowPiece::kElements, {}};
        f(at / kOfRow, piece);
    }
}

/// Writes the tile's rows from their one part: their partials to `to`, or, if that is null, the output.
template <int kWarps>
KVJIT_INLINE void write_part(const AttendWork& work, const RowParts& part, float* to) {
    for_each_piece<kWarps>(work, [&](i32 r, RowPiece& piece) {
        load_piece(piece, part.row(0, r));
        emit_row(work, work.row_begin + r, to ? to + r * kPartialStride : nullptr, piece, part.state(0, r));
    });
}

/// join_parts of many rows, to the output.
template <int kWarps>
KVJIT_INLINE void join_pieces(const AttendWork& work, const RowParts& parts) {
    for_each_piece<kWarps>(work, [&](i32 r, RowPiece& piece) {
        const Running running = merge_piece(
            piece, static_cast<i32>(parts.count), [&](i64 part) { return parts.state(part, r); },
            [&](i64 part) { return parts.row(part, r); });
        emit_row(work, work.row_begin + r, nullptr, piece, running);
    });
}

/// Writes the tile's rows from their parts in shared memory: one (kOnePart), or one of each warp. Where the tile's keys
/// are split they become a partial, and the tile's last block joins the partials of all. The block, of kWarps warps,
/// calls it together.
template <int kRows, bool kOnePart, int kWarps = kAttendWarps>
KVJIT_INLINE void finish_rows(const AttendWork& work, RowParts parts) {
    const TileSplits splits = work.splits;
    float* to = splits.partials ? splits.partials + splits.number * (kRows * kPartialStride) : nullptr;
    if constexpr (kOnePart) {
        write_part<kWarps>(work, parts, to);
        if (to && is_last_block(splits)) join_pieces<kWarps>(work, partials_of<kRows>(splits));
    } else {
        // One loop, since what is written twice compiles twice.
#pragma unroll 1
        for (;;) {
            join_parts<kWarps>(work, parts, to);
            if (!to || !is_last_block(splits)) return;
            to = nullptr;
            parts = partials_of<kRows>(splits);
        }
    }
}

}  // namespace kvjit
