// What one block of an attention kernel works on, and its query and output rows: common to dot products and tensor
// cores.
#pragma once

#include "common/abi.h"
#include "common/quant.h"
#include "common/score.h"
#include "common/slots.h"
#include "common/spec_block.h"
#include "cuda/attend/partial.h"
#include "cuda/shape.h"

namespace kvjit {

static_assert(kHeadDim % 8 == 0 && kHeadDim <= 256 && kGroup >= 1);
static_assert(!kQuantised || kHeadDim % kQuantGroup == 0);
static_assert(!kSame<T1, i8_t>);

inline constexpr CacheFormat kFormat = {kHeadDim, element_of<T2>().bits, kQuantised ? element_of<T3>().bits / 8 : 0,
                                        kQuantGroup};

/// A KeyRange in 32 bits, which positions fit. Without windows `begin` is 0 and not compared.
struct ShortRange {
    i32 begin, end;

    KVJIT_INLINE bool holds(i32 key) const { return key < end && (!kWindow || key >= begin); }
    KVJIT_INLINE bool holds(ShortRange other) const { return other.end <= end && (!kWindow || other.begin >= begin); }
    KVJIT_INLINE bool meets(ShortRange other) const {
        return other.begin < end && (!kWindow || (begin < end && other.end > begin));
    }
    /// Whether the range, counted from the first key of a tile of `keys` keys, has keys in that tile.
    KVJIT_INLINE bool meets_tile(i32 keys) const { return end > 0 && (!kWindow || begin < keys); }
};
KVJIT_INLINE ShortRange short_range(KeyRange range) {
    return {kWindow ? static_cast<i32>(range.begin) : 0, static_cast<i32>(range.end)};
}

/// A tile's keys, split among blocks.
struct TileSplits {
    i64 number;         // of this block's split
    i64 used;           // splits that have keys, at least 1; blocks of the others return at once
    float* partials;    // of all splits, in ascending order; null if there is one, which has no partial
    unsigned* counter;  // of blocks that have written theirs
};

/// A block's tile of rows and the keys that it attends for them, the same in all threads. Packed row r of a kv head is
/// new token r / kGroup, query head kv_head*kGroup + r % kGroup.
struct AttendWork {
    const abi::AttendArgs& args;
    CallSequence sequence;
    TableRow table;
    i64 kv_head;
    i64 row_begin, row_end;  // packed rows that exist
    KeyRange keys;           // those that some row of the tile sees, or the block's split of them; may be empty
    TileSplits splits;

    KVJIT_INLINE i64 token(i64 row) const { return static_cast<i64>(static_cast<u64>(row) / kGroup); }
    KVJIT_INLINE i64 head(i64 row) const { return kv_head * kGroup + static_cast<i64>(static_cast<u64>(row) % kGroup); }
    /// The keys that packed row `row` sees by their positions; the mask may hide more.
    KVJIT_INLINE KeyRange seen_by(i64 row) const { return visible_keys(sequence, token(row)); }
};

/// Keys that some of the packed rows row_begin..row_end-1 of a sequence sees.
KVJIT_INLINE KeyRange seen_by_rows(const CallSequence& sequence, i64 row_begin, i64 row_end) {
    const i64 first = static_cast<i64>(static_cast<u64>(row_begin) / kGroup);
    const i64 last = static_cast<i64>(static_cast<u64>(row_end - 1) / kGroup);
    return seen_by_some(visible_keys(sequence, first), visible_keys(sequence, last));
}

/// First key of the first tile of kKeys keys that has keys of the block. With windows tiles begin at multiples of
/// kKeys, so that it may begin with keys that are not the block's.
template <int kKeys>
KVJIT_INLINE i64 first_tile_key(const AttendWork& work) {
    return kWindow ? static_cast<i64>(static_cast<u64>(work.keys.begin) / kKeys * kKeys) : work.keys.begin;
}

/// The part of `keys` in the tile of kKeys keys that begins at key `first`, counted from there. If it has no key, then
/// !meets_tile(kKeys).
template <int kKeys>
KVJIT_INLINE ShortRange keys_of_tile(KeyRange keys, i64 first) {
    const i64 end = keys.end - first, begin = kWindow ? keys.begin - first : 0;
    return {static_cast<i32>(begin < kKeys ? begin : kKeys), static_cast<i32>(end < kKeys ? end : kKeys)};
}

KVJIT_INLINE const T1* query_row(const AttendWork& work, i64 row) {
    const abi::Rows& query = work.args.query;
    const i64 token = work.sequence.query_begin + work.token(row);
    return reinterpret_cast<const T1*>(query.base + token * query.token_stride + work.head(row) * query.head_stride);
}

inline constexpr i64 kPartialStride = kHeadDim + abi::kPartialTail;

// ---- Output --------------------------------------------------------------------------------------------------------

/// Writes what the caller has of packed row `row`'s output, with its lse.
template <class Row>
KVJIT_INLINE void write_output(const AttendWork& work, i64 row, const Row& acc, Running running) {
    const abi::AttendArgs& args = work.args;
    const i64 token = work.sequence.query_begin + work.token(row), head = work.head(row);
    char* out = args.output.base + token * args.output.token_stride + head * args.output.head_stride;
    finish_row(reinterpret_cast<T1*>(out), acc, add_sink(running, args.score.sinks, head));
    if (args.lse && has_first(acc))
        args.lse[token * args.lse_token_stride + head * args.lse_head_stride] = finish_lse(running);
}

/// Writes what the caller has of packed row `row`: to its partial `to`, or, if that is null, to the output. Row: a
/// RowLanes, the warp's together, or a RowPiece. running.max may have missed a NaN, its sum has not.
template <class Row>
KVJIT_INLINE void emit_row(const AttendWork& work, i64 row, float* to, const Row& acc, Running running) {
    running.max = part_max(running.max, running.sum);
    if (!to) return write_output(work, row, acc, running);
    if (has_first(acc)) {
        to[kHeadDim] = running.max;
        to[kHeadDim + 1] = running.sum;
    }
    if (!is_empty_part(running.max)) store_row(to, acc);
}

}  // namespace kvjit
