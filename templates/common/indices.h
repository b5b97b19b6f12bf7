// Arrays of starts, lengths, positions and rows. Their width, 64 or 32 bits, is decided at run time: a sequence's few
// elements are read once for many keys.
#pragma once

#include "common/abi.h"
#include "common/types.h"

namespace kvjit {

KVJIT_INLINE bool is_given(const abi::Indices& array) {
    return array.data != nullptr;
}

KVJIT_COLD i64 index_at(const abi::Indices& array, i64 i) {
    return array.narrow != 0 ? static_cast<const i32*>(array.data)[i] : static_cast<const i64*>(array.data)[i];
}

/// starts[b + 1] - starts[b]. It wraps: a lane of the check kernel may read wrong starts that another lane reports.
KVJIT_INLINE i64 length(const abi::Indices& starts, i64 b) {
    return static_cast<i64>(static_cast<u64>(index_at(starts, b + 1)) - static_cast<u64>(index_at(starts, b)));
}

/// m, the number of keys of sequence b. It wraps, too.
KVJIT_INLINE i64 key_count(const abi::KeyCounts& keys, i64 b) {
    if (is_given(keys.starts)) return length(keys.starts, b);
    if (is_given(keys.counts)) return index_at(keys.counts, b);
    const i64 pages = length(keys.page_starts, b);
    const u64 full = static_cast<u64>(pages - 1) * static_cast<u64>(keys.page_tokens);
    return pages == 0 ? 0 : static_cast<i64>(full + static_cast<u64>(index_at(keys.last, b)));
}

/// Number of keys in the sequences before b; 0 where the batch has no kvstarts, as nothing then uses that number.
KVJIT_INLINE i64 key_begin(const abi::KeyCounts& keys, i64 b) {
    return is_given(keys.starts) ? index_at(keys.starts, b) : 0;
}

/// Index of the first entry of sequence b's row in the table.
KVJIT_INLINE i64 row_begin(const abi::Table& table, i64 b) {
    if (is_given(table.rowstarts)) return index_at(table.rowstarts, b);
    return (is_given(table.row_index) ? index_at(table.row_index, b) : b) * table.row_stride;
}

}  // namespace kvjit
