// The loops of store. The entry file's store_slot(encoder, stream, input row, entry, token, head) stores one row; its
// stream is that of keys or of values.
#pragma once

#include "common/abi.h"
#include "common/slots.h"
#include "common/spec_block.h"
#include "common/types.h"

namespace kvjit {

// ---- Work split: runs of tokens in one page, in the cache's order of heads and tokens -------------------------------

/// Stores one run; `row` is the input row of the run's first token.
template <class Key, class Value>
KVJIT_NOINLINE void store_run(const Key& key, const Value& value, const abi::TokenItem& item, const Run& run, i64 row) {
    typename Key::Encoder encoder;
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

/// Stores each token in the slot that args.slots has for it.
template <class Key, class Value>
KVJIT_INLINE void store_chosen(const Key& key, const Value& value, const abi::StoreArgs& args,
                               const abi::TokenItem& item) {
    const i64 first_row = index_at(args.seqstarts, item.sequence);
    for (i64 i = item.begin; i < item.end; ++i) {
        const i64 slot = index_at(args.slots, first_row + i);
        if (slot < 0) continue;
        const Slot chosen = chosen_slot(args, slot);
        store_run(key, value, item, {chosen.entry, chosen.token, i, 1}, first_row + i);
    }
}

template <class Key, class Value>
KVJIT_INLINE void store_item(const Key& key, const Value& value, const abi::StoreArgs& args,
                             const abi::TokenItem& item) {
    if (is_given(args.slots)) return store_chosen(key, value, args, item);
    const i64 start = key_count(args.keys, item.sequence) - length(args.seqstarts, item.sequence);
    const i64 row_of_position_0 = index_at(args.seqstarts, item.sequence) - start;
    for_each_run(table_row(args.table, item.sequence), start + item.begin, start + item.end,
                 [&](const Run& run) { store_run(key, value, item, run, row_of_position_0 + run.position); });
}

}  // namespace kvjit
