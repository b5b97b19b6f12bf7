// The loops of load. The entry file's load_slot(stream, output row, entry, token, head) loads one row; its stream is
// that of keys or of values, not wanted where stream.to.base is null.
#pragma once

#include "common/abi.h"
#include "common/slots.h"
#include "common/spec_block.h"
#include "common/types.h"

namespace kvjit {

// ---- Work split: runs of tokens in one page, in the cache's order of heads and tokens -------------------------------

/// Loads one run; `row` is the output row of the run's first position.
template <class Stream>
KVJIT_INLINE void load_run(const Stream& stream, const abi::TokenItem& item, const Run& run, i64 row) {
    if (!stream.to.base) return;
    if constexpr (kHeadInner) {
        for (i64 i = 0; i < run.count; ++i)
            for (i64 h = item.head_begin; h < item.head_end; ++h)
                load_slot(stream, row + i, run.entry, run.first + i, h);
    } else {
        for (i64 h = item.head_begin; h < item.head_end; ++h)
            for (i64 i = 0; i < run.count; ++i) load_slot(stream, row + i, run.entry, run.first + i, h);
    }
}

template <class Key, class Value>
KVJIT_INLINE void load_item(const Key& key, const Value& value, const abi::LoadArgs& args, const abi::TokenItem& item) {
    const i64 first_row = index_at(args.keys.starts, item.sequence);
    for_each_run(table_row(args.table, item.sequence), item.begin, item.end, [&](const Run& run) {
        load_run(key, item, run, first_row + run.position);
        load_run(value, item, run, first_row + run.position);
    });
}

}  // namespace kvjit
