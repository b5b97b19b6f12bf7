// A tile's keys, split among blocks: each block stores a partial for its split, and the one that finishes last merges
// the partials of all splits, in ascending order, so that bits don't depend on which block that is.
#pragma once

#include "common/abi.h"
#include "cuda/attend/partial.h"
#include "cuda/attend/work.h"

namespace kvjit {

struct Split {
    i64 number;
    i64 used;  // splits that have keys, at least 1; blocks of the others return at once
    KeyRange keys;
};

/// Keys of a split of `count` keys, which may be far fewer than the plan's bound.
KVJIT_INLINE u32 keys_of_split(const abi::CudaAttendArgs& args, u32 count) {
    const u32 splits = static_cast<u32>(args.splits), each = (count + splits - 1) / splits;
    const u32 least = static_cast<u32>(args.least_split);
    return each < least ? least : (each + kSplitUnit - 1) / kSplitUnit * kSplitUnit;
}

/// Split `number` of the keys `seen` by a tile's rows. Splits begin at multiples of kSplitUnit; of a fixed size, at
/// multiples of that. The last split takes all remaining keys.
KVJIT_INLINE Split split_of(const abi::CudaAttendArgs& args, i64 number, KeyRange seen) {
    const u32 fixed = static_cast<u32>(args.split_keys), unit = fixed != 0 ? fixed : kSplitUnit;
    const u32 origin = kWindow ? static_cast<u32>(seen.begin) / unit * unit : 0;
    const u32 count = static_cast<u32>(seen.end) - origin, keys = fixed != 0 ? fixed : keys_of_split(args, count);
    const i64 needed = (count + keys - 1) / keys;
    const i64 used = needed < 1 ? 1 : needed < args.splits ? needed : args.splits;
    const i64 begin = origin + number * keys, end = number == used - 1 ? seen.end : begin + keys;
    return {number, used, {kWindow && begin < seen.begin ? seen.begin : begin, end}};
}

/// Address of the partial of split `split` for the first row of a tile.
KVJIT_INLINE float* split_partials(const abi::CudaAttendArgs& args, i64 tile, i64 tile_rows, i64 split) {
    return args.attend.partials + (tile * args.splits + split) * tile_rows * kPartialStride;
}

// ---- Merge ---------------------------------------------------------------------------------------------------------

/// Whether this block is the last of the tile's `used` blocks to call it; it then sees the others' partials. The block
/// calls it together, after writing its own. The last block sets the tile's counter back to 0.
KVJIT_INLINE bool is_last_block(const abi::CudaAttendArgs& args, i64 tile, i64 used) {
    u32& arrived = shared_memory<u32>();
    unsigned* counter = args.counters + tile;
    barrier();
    if (opaque(thread_index()) == 0) {
        thread_fence();  // orders the block's partials, which the barrier above has gathered, before the count
        arrived = atomic_add(counter, 1);
        thread_fence();  // orders the count before reads of the others' partials past the barrier below
    }
    barrier();
    if (arrived != static_cast<u32>(used - 1)) return false;
    if (opaque(thread_index()) == 0) *counter = 0;
    return true;
}

/// Merges the tile's `used` splits, if this block is the last one. The block calls it together.
KVJIT_INLINE void finish_splits(const abi::CudaAttendArgs& args, const AttendWork& work, i64 tile, i64 tile_rows,
                                i64 used) {
    if (!is_last_block(args, tile, used)) return;
    const float* first = split_partials(args, tile, tile_rows, 0);
    const i64 stride = tile_rows * kPartialStride;
    for (i64 row = work.row_begin + later_warp(); row < work.row_end; row += kAttendWarps) {
        const float* part = first + (row - work.row_begin) * kPartialStride;
        RowLanes acc;
        const Running merged = merge_parts(
            acc, used, [&](i64 s) { return Running{part[s * stride + kHeadDim], part[s * stride + kHeadDim + 1]}; },
            [&](i64 s) { return part + s * stride; });
        write_output(work, row, acc, merged);
    }
}

}  // namespace kvjit
