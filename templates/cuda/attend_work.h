// What one block of an attention kernel works on, and where its rows come from and go to: common to attention by dot
// products and by tensor cores.
#pragma once

#include "common/abi.h"
#include "common/quant.h"
#include "common/score.h"
#include "common/shape.h"
#include "common/slots.h"
#include "common/spec_block.h"
#include "cuda/partial.h"

namespace kvjit {

inline constexpr CacheFormat kFormat = {kHeadDim, static_cast<int>(sizeof(T1)), static_cast<int>(bytes_of<T2>(8)),
                                        kQuantised ? static_cast<int>(sizeof(T3)) : 0, kQuantGroup};

/// A tile of rows and the keys that the block attends for them. All threads of a block have the same.
/// Row r of a kv head is new token r / kGroup, query head kv_head*kGroup + r % kGroup.
struct AttendWork {
    const abi::AttendArgs& args;
    CallSequence sequence;
    const Index* table;
    i64 kv_head;
    i64 row_begin, row_end;  // packed rows; row_end is cut at the last one that there is
    i64 key_begin, key_end;  // a multiple of kSplitUnit; cut at what the tile's last row sees. Maybe no key at all
    float* partials;         // where row_begin's partial goes, the others behind it; null: write output and lse

    KVJIT_INLINE i64 token(i64 row) const { return static_cast<i64>(static_cast<u64>(row) / kGroup); }
    KVJIT_INLINE i64 head(i64 row) const { return kv_head * kGroup + static_cast<i64>(static_cast<u64>(row) % kGroup); }
};

/// The query row of packed row `row`.
KVJIT_INLINE const T1* query_row(const AttendWork& work, i64 row) {
    const abi::Rows& query = work.args.query;
    const i64 token = work.sequence.query_begin + work.token(row);
    return reinterpret_cast<const T1*>(query.base + token * query.token_stride + work.head(row) * query.head_stride);
}

/// Packed row `row` sees keys 0..visible_keys_of-1, less those that the mask hides.
KVJIT_INLINE i64 visible_keys_of(const AttendWork& work, i64 row) {
    return visible_keys(work.sequence, work.token(row));
}

inline constexpr i64 kPartialStride = kHeadDim + abi::kPartialTail;

// ---- 6. Store ------------------------------------------------------------------------------------------------------

/// Writes packed row `row` as finished output, and its lse. The warp calls it together, each lane with its own
/// elements.
KVJIT_INLINE void write_output(const AttendWork& work, i64 row, const RowLanes& acc, Running running) {
    const abi::AttendArgs& args = work.args;
    const i64 token = work.sequence.query_begin + work.token(row), head = work.head(row);
    char* out = args.output.base + token * args.output.token_stride + head * args.output.head_stride;
    finish_row(reinterpret_cast<T1*>(out), acc, running);
    if (args.lse && lane_index() == 0)
        args.lse[token * args.lse_token_stride + head * args.lse_head_stride] = finish_lse(running);
}

/// Writes what the block found for packed row `row`: a partial where others have the rest of its keys, else output and
/// lse. The warp calls it together. `running` may have missed a NaN: its sum has not.
KVJIT_INLINE void emit_row(const AttendWork& work, i64 row, const RowLanes& acc, Running running) {
    running.max = part_max(running.max, running.sum);
    if (!work.partials) return write_output(work, row, acc, running);
    float* to = work.partials + (row - work.row_begin) * kPartialStride;
    if (lane_index() == 0) {
        to[kHeadDim] = running.max;
        to[kHeadDim + 1] = running.sum;
    }
    if (!is_empty_part(running.max)) store_lanes(to, acc);
}

}  // namespace kvjit
