// The parts of check_batch, in the order in which they run: each may rely on what those above it have checked.
#pragma once

#include <cstdint>

#include "check/arithmetic.h"
#include "check/check_batch.h"

namespace kvjit::rt {

/// Type, rank, extents, strides and pointer of cachestarts; which of rowstarts and row_index go with it. O(1).
gen::Result<void> check_table_shape(const gen::KernelSpec& spec, const kvjit_batch& batch);

/// seqstarts, kvstarts, max_seqlen, max_kvlen. O(B).
gen::Result<void> check_starts(const gen::KernelSpec& spec, const kvjit_batch& batch);

/// New tokens are the last of their sequence's keys, and start_pos says so. O(B).
gen::Result<void> check_new_positions(const gen::KernelSpec& spec, const kvjit_batch& batch);

/// starts[0] is 0 and none of the B that follow falls. O(B), B > 0.
gen::Result<void> check_monotonic(const char* name, const std::int64_t* starts, std::int64_t batch_size);

/// rowstarts, row_index, and rows long enough for their keys. O(B).
gen::Result<void> check_table_rows(const gen::KernelSpec& spec, const kvjit_batch& batch);

/// Each entry that a key uses. O(B + pages).
gen::Result<void> check_table_entries(const gen::KernelSpec& spec, const kvjit_batch& batch);

/// No slot for two new tokens. O(B + r log r), r runs of neighbouring new slots.
gen::Result<void> check_new_slots(const gen::KernelSpec& spec, const kvjit_batch& batch);

// ---- What the parts share: the table of a batch ----------------------------------------------------------

/// Tokens behind one entry: everything for offset, 1 for token_table.
inline std::int64_t tokens_per_entry(const gen::KernelSpec& spec) {
    if (gen::is_paged(spec)) return spec.page_size;
    return spec.cache_mode == KVJIT_OFFSET ? kMaxInt64 : 1;
}

/// Entries that a sequence of m keys uses.
inline std::int64_t used_entries(const gen::KernelSpec& spec, std::int64_t m) {
    const std::int64_t tokens = tokens_per_entry(spec);
    return m / tokens + (m % tokens != 0);
}

/// Index of sequence b's first entry in cachestarts.data.
inline std::int64_t row_begin(const gen::KernelSpec& spec, const kvjit_batch& batch, std::int64_t b) {
    if (spec.cache_mode == KVJIT_OFFSET) return b;
    if (spec.cache_mode == KVJIT_TOKEN_TABLE) return batch.kvstarts[b];
    if (batch.rowstarts != nullptr) return batch.rowstarts[b];
    return (batch.row_index != nullptr ? batch.row_index[b] : b) * batch.cachestarts.strides[0];
}

/// The first entry of sequence b's row.
template <class Index>
const Index* table_row(const gen::KernelSpec& spec, const kvjit_batch& batch, std::int64_t b) {
    return static_cast<const Index*>(batch.cachestarts.data) + row_begin(spec, batch, b);
}

}  // namespace kvjit::rt
