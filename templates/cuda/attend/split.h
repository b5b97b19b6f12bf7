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

/// Joins the parts in which the block has its rows, in shared memory, and writes the rows. Where the tile's keys are
/// split these are partials; the tile's last block then does the same with the partials of all. The block calls it
/// together.
template <int kRows>
KVJIT_INLINE void finish_rows(const AttendWork& work, RowParts parts) {
    const TileSplits splits = work.splits;
    constexpr i64 kSplitStride = kRows * kPartialStride;
    float* to = splits.partials ? splits.partials + splits.number * kSplitStride : nullptr;
    // One loop, since what is written twice compiles twice.
#pragma unroll 1
    for (;;) {
#pragma unroll 1
        for (i32 r = later_warp(); work.row_begin + r < work.row_end; r += kAttendWarps) {
            RowLanes acc;
            const Running running = merge_parts(
                acc, parts.count, [&](i64 part) { return parts.state(part, r); },
                [&](i64 part) { return parts.row(part, r); });
            emit_row(work, work.row_begin + r, to ? to + r * kPartialStride : nullptr, acc, running);
        }
        if (!to || !is_last_block(splits)) return;
        to = nullptr;
        parts = {splits.used, splits.partials, splits.partials + kHeadDim, kSplitStride, kPartialStride};
    }
}

}  // namespace kvjit
