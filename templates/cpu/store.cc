// store: new keys and values go to their slots, quantised, converted or moved (docs/semantics.md, sections 2, 5 and 6).
#include "common/abi.h"
#include "common/slots.h"
#include "common/spec_block.h"
#include "common/types.h"
#include "cpu/rows.h"

namespace kvjit {

// ---- 2. Work split: runs of tokens in one page, in the order in which the cache has them ----------------------------

/// One of key and value of the call.
struct StoreStream {
    abi::Rows from;
    abi::Plane to, scale;
};
using Encoder = RowEncoder<CacheRow>;

KVJIT_INLINE void store_slot(Encoder& encoder, const StoreStream& stream, i64 row, const PageEntry& entry, i64 token,
                             i64 head) {
    const char* from = stream.from.base + row * stream.from.token_stride + head * stream.from.head_stride;
    T3* scales = nullptr;
    if constexpr (kQuantised) scales = reinterpret_cast<T3*>(slot_address(stream.scale, entry.scales(), token, head));
    encoder.add(reinterpret_cast<T2*>(slot_address(stream.to, entry.codes, token, head)), scales,
                reinterpret_cast<const T1*>(from));
}

/// Stores one run; `row` is the input row of the run's first token.
KVJIT_NOINLINE void store_run(const StoreStream& key, const StoreStream& value, const abi::TokenItem& item,
                              const Run& run, i64 row) {
    Encoder encoder;
    if constexpr (kHeadInner) {
        for (i64 i = 0; i < run.count; ++i) {
            for (i64 h = item.head_begin; h < item.head_end; ++h)
                store_slot(encoder, key, row + i, run.entry, run.first + i, h);
            for (i64 h = item.head_begin; h < item.head_end; ++h)
                store_slot(encoder, value, row + i, run.entry, run.first + i, h);
        }
    } else {
        for (i64 h = item.head_begin; h < item.head_end; ++h) {
            for (i64 i = 0; i < run.count; ++i) store_slot(encoder, key, row + i, run.entry, run.first + i, h);
            for (i64 i = 0; i < run.count; ++i) store_slot(encoder, value, row + i, run.entry, run.first + i, h);
        }
    }
    encoder.finish();
}

/// Stores each token where args.slots says.
KVJIT_INLINE void store_chosen(const StoreStream& key, const StoreStream& value, const abi::StoreArgs& args,
                               const abi::TokenItem& item) {
    const i64 first_row = index_at(args.seqstarts, item.sequence);
    for (i64 i = item.begin; i < item.end; ++i) {
        const i64 slot = index_at(args.slots, first_row + i);
        if (slot < 0) continue;
        const Slot chosen = chosen_slot(args, slot);
        store_run(key, value, item, {chosen.entry, chosen.token, i, 1}, first_row + i);
    }
}

KVJIT_INLINE void store_item(const abi::StoreArgs& args, const abi::TokenItem& item) {
    const StoreStream key = {args.key, args.cache.key, args.cache.key_scale};
    const StoreStream value = {args.value, args.cache.value, args.cache.value_scale};
    if (is_given(args.slots)) return store_chosen(key, value, args, item);
    const i64 start = key_count(args.keys, item.sequence) - length(args.seqstarts, item.sequence);
    const i64 row_of_position_0 = index_at(args.seqstarts, item.sequence) - start;
    for_each_run(table_row(args.table, item.sequence), start + item.begin, start + item.end,
                 [&](const Run& run) { store_run(key, value, item, run, row_of_position_0 + run.position); });
}

}  // namespace kvjit

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

extern "C" void kvjit_store(const kvjit::abi::StoreArgs* args, const kvjit::abi::TokenItem* item) {
    kvjit::store_item(*args, *item);
}
