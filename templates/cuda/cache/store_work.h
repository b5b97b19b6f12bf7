// Which rows each warp of store writes, and where it reads them. The entry file's `store` does both.
#pragma once

#include "common/abi.h"
#include "common/slots.h"
#include "common/types.h"
#include "cuda/cache/token_work.h"

namespace kvjit {

// ---- Work split: warps for each (token, key or value), which divide its kv heads -----------------------------------

/// The slot of new token `row`, of sequence b. A negative chosen slot is outside of the cache, so it is not stored.
KVJIT_INLINE Slot slot_of_row(const abi::StoreArgs& args, i64 b, i64 row) {
    if (is_given(args.slots)) return chosen_slot(args, index_at(args.slots, row));
    const i64 position = key_count(args.keys, b) - index_at(args.seqstarts, b + 1) + row;
    return slot_of(args.table, b, position);
}

/// Calls store(place, slot, rows of T1) for the warp's heads.
template <class Store>
KVJIT_INLINE void store_rows(const abi::CudaStoreArgs& args, Store&& store) {
    const TokenPlace place = place_of_warp(args.launch, args.split);
    const abi::Indices& seqstarts = args.store.seqstarts;
    const i64 sequences = args.launch.batch_size;
    if (is_faulty(args.launch) || place.row >= index_at(seqstarts, sequences)) return;
    const i64 b = find_sequence(sequences, place.row, [&](i64 s) { return index_at(seqstarts, s); });
    const Slot slot = slot_of_row(args.store, b, place.row);
    if (!is_inside(args.launch, slot)) return;
    const abi::Rows& rows = place.value ? args.store.value : args.store.key;
    char* first = rows.base + place.row * rows.token_stride + place.head_begin * rows.head_stride;
    store(place, slot, HeadRows{first, rows.head_stride});
}

}  // namespace kvjit
