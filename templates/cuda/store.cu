// store: new keys and values go to their slots, quantised, converted or moved (docs/semantics.md, sections 2, 5 and 6).
#include "common/abi.h"
#include "common/shape.h"
#include "common/slots.h"
#include "common/spec_block.h"
#include "common/types.h"
#include "cuda/row_codec.h"
#include "cuda/token_rows.h"

namespace kvjit {

// ---- 2. Work split: a warp for each (token, kv head, key or value) -------------------------------------------------

/// Where row `row`, of sequence b, goes; none below 0 is inside of the cache.
KVJIT_INLINE Slot slot_of_row(const abi::StoreArgs& args, i64 b, i64 row) {
    if (is_given(args.slots)) return chosen_slot(args, index_at(args.slots, row));
    const i64 position = key_count(args.keys, b) - index_at(args.seqstarts, b + 1) + row;
    return slot_of(args.table, b, position);
}

KVJIT_INLINE void store_row(const abi::CudaStoreArgs& args) {
    const TokenPlace place = place_of_warp(args.launch);
    const abi::Indices& seqstarts = args.store.seqstarts;
    const i64 sequences = args.launch.batch_size;
    if (is_faulty(args.launch) || place.row >= index_at(seqstarts, sequences)) return;
    const i64 b = find_sequence(sequences, place.row, [&](i64 s) { return index_at(seqstarts, s); });
    const Slot slot = slot_of_row(args.store, b, place.row);

    const abi::Cache& cache = args.store.cache;
    const abi::Plane& to = place.value ? cache.value : cache.key;
    if (!is_inside(args.launch, slot)) return;
    const abi::Rows& rows = place.value ? args.store.value : args.store.key;
    const char* from = rows.base + place.row * rows.token_stride + place.head * rows.head_stride;
    T3* scales = nullptr;
    if constexpr (kQuantised) {
        const abi::Plane& scale = place.value ? cache.value_scale : cache.key_scale;
        scales = reinterpret_cast<T3*>(slot_address(scale, slot.entry.scales(), slot.token, place.head));
    }
    encode_row(slot_address(to, slot.entry.codes, slot.token, place.head), scales, from);
}

}  // namespace kvjit

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

KVJIT_ENTRY(kvjit::kTokenShape.threads, kvjit::kTokenShape.blocks_per_sm)
kvjit_store(KVJIT_PARAM(kvjit::abi::CudaStoreArgs) args) {
    kvjit::store_row(args);
}
