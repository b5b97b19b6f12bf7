// Which keys a row sees by their positions: a range, whose ends never decrease from one new token of a sequence to the
// next (docs/semantics.md, section 3). So of tokens first..last
//     keys outside {range(first).begin, range(last).end} are hidden from all of them
//     keys inside  {range(last).begin, range(first).end} are seen by each
// and work items, grids, loops and lists of rows go by these. Host and kernels share this file.
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

/// The range as seen from `origin`, as far as it falls into the `count` keys from there on.
KVJIT_INLINE KeyRange part_from(i64 origin, i64 count, KeyRange range) {
    return common_part({range.begin - origin, range.end - origin}, {0, count});
}

/// The keys of a tile of rows, from those of its first and of its last row.
KVJIT_INLINE KeyRange seen_by_some(KeyRange first, KeyRange last) {
    return {first.begin, last.end};
}
KVJIT_INLINE KeyRange seen_by_all(KeyRange first, KeyRange last) {
    return {last.begin, first.end};
}

/// How many keys a row sees before and after its own position, at most: 0 or more, abi::kNoLimit for all.
struct Reach {
    i64 before, after;
};

/// Of a sequence, from the batch's window. Decoding sequences are cut by ALiBi alone.
KVJIT_INLINE Reach reach_of(Reach window, bool is_causal, bool is_alibi, bool is_decoding) {
    if (is_alibi || (is_causal && !is_decoding)) return {window.before, 0};
    return {window.before, is_decoding ? abi::kNoLimit : window.after};
}

/// The keys within reach of a query at `position` among `keys`. A new token's is less than `keys`, and below 0 where
/// there are fewer keys than new tokens; such a row sees what comes after it.
KVJIT_INLINE KeyRange keys_in_reach(i64 keys, i64 position, Reach reach) {
    const i64 begin = reach.before < position ? position - reach.before : 0;
    const i64 end = reach.after < keys - position - 1 ? position + reach.after + 1 : keys;
    return {begin, end > 0 ? end : 0};
}

}  // namespace kvjit
