// Where position t of sequence b lives in the cache (docs/semantics.md, section 5).
#pragma once

#include "common/abi.h"
#include "common/indices.h"
#include "common/quant.h"
#include "common/spec_block.h"
#include "common/types.h"

namespace kvjit {

/// Divisor of positions. Without pages it is unused, but compilers check the division all the same.
inline constexpr i64 kPageDivisor = kPageSize == 0 ? 1 : kPageSize;

/// Whether scales have a table of their own: addresses of scale blocks beside addresses of code blocks.
inline constexpr bool kScaleTable = kAddresses && kQuantised;

/// A page's entries in the tables: that of its codes, and that of its scales.
template <bool kTwo>
struct PageEntryOf {
    i64 codes;

    KVJIT_INLINE i64 scales() const { return codes; }
};
template <>
struct PageEntryOf<true> {
    i64 codes, scale_block = 0;

    KVJIT_INLINE i64 scales() const { return scale_block; }
};
using PageEntry = PageEntryOf<kScaleTable>;

/// Address, in a row of the table, of the entry of position t's page.
KVJIT_INLINE const Index* page_entry_at(const Index* row, i64 t) {
    if constexpr (kPageSize == 0)
        return row;
    else
        return row + static_cast<u64>(t) / kPageDivisor;
}

template <bool kTwo>
struct TableRowOf {
    const Index* codes;

    KVJIT_INLINE static TableRowOf at(const abi::Table& table, i64 begin) {
        return {static_cast<const Index*>(table.entries) + begin};
    }
    /// The entries of position t's page, whose codes have `entry`.
    KVJIT_INLINE PageEntryOf<false> complete(i64 entry, i64) const { return {entry}; }
};
template <>
struct TableRowOf<true> {
    const Index *codes, *scales;

    KVJIT_INLINE static TableRowOf at(const abi::Table& table, i64 begin) {
        return {static_cast<const Index*>(table.entries) + begin, static_cast<const Index*>(table.scales) + begin};
    }
    /// Entry 0, no block's address, stands for a page that isn't looked up.
    KVJIT_INLINE PageEntryOf<true> complete(i64 entry, i64 t) const {
        return {entry, entry == 0 ? 0 : *page_entry_at(scales, t)};
    }
};
using TableRow = TableRowOf<kScaleTable>;

KVJIT_INLINE TableRow table_row(const abi::Table& table, i64 b) {
    return TableRow::at(table, row_begin(table, b));
}

/// The entries of position t's page.
KVJIT_INLINE PageEntry page_entry(const TableRow& row, i64 t) {
    return row.complete(*page_entry_at(row.codes, t), t);
}

/// Number of position t's token in its page.
KVJIT_INLINE i64 token_in_page(i64 t) {
    if constexpr (kPageSize == 0)
        return t;
    else
        return static_cast<i64>(static_cast<u64>(t) % kPageDivisor);
}

struct Slot {
    PageEntry entry;
    i64 token;
};

/// The slot that the caller chose for a new token, from its number. Blocks at addresses have no numbered slots.
KVJIT_INLINE Slot chosen_slot(const abi::StoreArgs& args, i64 slot) {
    if (args.slot_tokens == 0 || slot < 0) return {{slot}, 0};
    return {{slot / args.slot_tokens}, slot % args.slot_tokens};
}

/// Address of (entry, token in page, kv head) in one of the cache's planes.
KVJIT_INLINE char* slot_address(const abi::Plane& plane, i64 entry, i64 token, i64 head) {
    const i64 within = token * plane.token_stride + head * plane.head_stride;
    // Integers: the base is an offset here, from which C++ has no pointer arithmetic into the block.
    if constexpr (kAddresses)
        return reinterpret_cast<char*>(entry + reinterpret_cast<i64>(plane.base) + within);
    else
        return plane.base + entry * plane.page_stride + within;
}

/// `count` consecutive positions inside one page: position + k is token first + k of `entry`.
struct Run {
    PageEntry entry;
    i64 first;
    i64 position;
    i64 count;
};

/// Calls f(Run) for positions begin..end-1 in ascending order, once per page. Reads no entry past that of end-1.
template <class F>
KVJIT_INLINE void for_each_run(const TableRow& row, i64 begin, i64 end, F&& f) {
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
