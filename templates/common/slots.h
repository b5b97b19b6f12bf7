// Where position t of sequence b lives in the cache (docs/semantics.md, section 5).
#pragma once

#include "common/abi.h"
#include "common/indices.h"
#include "common/spec_block.h"
#include "common/types.h"

namespace kvjit {

/// What positions are divided by. Without pages nothing is, but compilers read that code, too.
inline constexpr i64 kPageDivisor = kPageSize == 0 ? 1 : kPageSize;

/// Sequence b's row of the table.
KVJIT_INLINE const Index* table_row(const abi::Table& table, i64 b) {
    return static_cast<const Index*>(table.entries) + row_begin(table, b);
}

/// Where the entry is that position t falls into.
KVJIT_INLINE const Index* page_entry_at(const Index* row, i64 t) {
    if constexpr (kPageSize == 0)
        return row;
    else
        return row + static_cast<u64>(t) / kPageDivisor;
}

/// The entry that position t falls into.
KVJIT_INLINE i64 page_entry(const Index* row, i64 t) {
    return *page_entry_at(row, t);
}

/// Position t's token inside its page.
KVJIT_INLINE i64 token_in_page(i64 t) {
    if constexpr (kPageSize == 0)
        return t;
    else
        return static_cast<i64>(static_cast<u64>(t) % kPageDivisor);
}

/// Address of (entry, token in page, kv head) in one of the cache's planes.
KVJIT_INLINE char* slot_address(const abi::Plane& plane, i64 entry, i64 token, i64 head) {
    return plane.base + entry * plane.page_stride + token * plane.token_stride + head * plane.head_stride;
}

/// `count` consecutive positions inside one page: position + k is token first + k of `entry`.
struct Run {
    i64 entry;
    i64 first;
    i64 position;
    i64 count;
};

/// Calls f(Run) for positions begin..end-1 in ascending order, once a page. Reads no entry past position end-1's.
template <class F>
KVJIT_INLINE void for_each_run(const Index* row, i64 begin, i64 end, F&& f) {
    i64 token = token_in_page(begin);
    for (i64 t = begin; t < end;) {
        const i64 rest = end - t;
        const i64 in_page = kPageSize == 0 ? rest : kPageSize - token;
        const i64 count = rest < in_page ? rest : in_page;
        f(Run{page_entry(row, t), token, t, count});
        t += count;
        token = 0;
    }
}

}  // namespace kvjit
