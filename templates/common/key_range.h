// The range of keys that a row sees by their positions. Neither end decreases from one new token of a sequence to the
// next (docs/semantics.md, section 3), so that for tokens first..last
//     keys outside {range(first).begin, range(last).end} are hidden from all of them
//     keys inside  {range(last).begin, range(first).end} are seen by all of them.
// Work items, grids, loops and lists of rows follow these two ranges. Host and kernels share this file.
#pragma once

#include "common/abi.h"
#include "common/types.h"

namespace kvjit {

/// Keys begin..end-1; none where end <= begin.
struct KeyRange {
    i64 begin, end;

    KVJIT_INLINE bool empty() const { return end <= begin; }
    KVJIT_INLINE i64 count() const { return empty() ? 0 : end - begin; }
    KVJIT_INLINE bool holds(KeyRange other) const { return other.begin >= begin && other.end <= end; }
};

KVJIT_INLINE KeyRange common_part(KeyRange a, KeyRange b) {
    return {a.begin > b.begin ? a.begin : b.begin, a.end < b.end ? a.end : b.end};
}

/// The part of the range in keys origin..origin+count-1, counted from `origin`.
KVJIT_INLINE KeyRange part_from(i64 origin, i64 count, KeyRange range) {
    return common_part({range.begin - origin, range.end - origin}, {0, count});
}

/// Keys that some row, and that every row, of a tile sees, from the ranges of its first and its last row.
KVJIT_INLINE KeyRange seen_by_some(KeyRange first, KeyRange last) {
    return {first.begin, last.end};
}
KVJIT_INLINE KeyRange seen_by_all(KeyRange first, KeyRange last) {
    return {last.begin, first.end};
}

/// The most keys that a row sees before and after its own position: 0 or more; abi::kNoLimit: all.
struct Reach {
    i64 before, after;
};

/// A sequence's reach, from the batch's window. In a decoding sequence only ALiBi hides keys after a row's position.
KVJIT_INLINE Reach reach_of(Reach window, bool is_causal, bool is_alibi, bool is_decoding) {
    if (is_alibi || (is_causal && !is_decoding)) return {window.before, 0};
    return {window.before, is_decoding ? abi::kNoLimit : window.after};
}

/// The keys within reach of a query at `position` in a sequence of `keys` keys. `position` is less than `keys`; it is
/// negative for the first rows where new tokens outnumber keys. No key is before position 0: NVRTC, which computes the
/// difference in any case and takes 0 where that is less, must find none that overflows.
KVJIT_INLINE KeyRange keys_in_reach(i64 keys, i64 position, Reach reach) {
    const i64 from = position > 0 ? position : 0;
    const i64 begin = reach.before < from ? from - reach.before : 0;
    const i64 end = reach.after < keys - position - 1 ? position + reach.after + 1 : keys;
    return {begin, end > 0 ? end : 0};
}

}  // namespace kvjit
