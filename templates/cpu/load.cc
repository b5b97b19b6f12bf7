// load: positions of the cache are read back, dequantised, converted or moved, each head num_repeat times
// (docs/semantics.md, sections 2, 5 and 6).
#include "common/abi.h"
#include "common/slots.h"
#include "common/spec_block.h"
#include "common/types.h"
#include "cpu/rows.h"

namespace kvjit {

// ---- 2. Work split: runs of tokens in one page, in the order in which the cache has them ----------------------------

/// One of key and value of the call. to.base null: not asked for.
struct LoadStream {
    abi::Rows to;
    abi::Plane from, scale;
    i64 num_repeat;
};

KVJIT_INLINE void load_slot(const LoadStream& stream, i64 row, const PageEntry& entry, i64 token, i64 head) {
    const i64 stride = stream.to.head_stride;
    char* to = stream.to.base + row * stream.to.token_stride + head * stream.num_repeat * stride;
    const T3* scales = nullptr;
    if constexpr (kQuantised)
        scales = reinterpret_cast<const T3*>(slot_address(stream.scale, entry.scales(), token, head));
    T1* first = reinterpret_cast<T1*>(to);
    decode_row(first, reinterpret_cast<const T2*>(slot_address(stream.from, entry.codes, token, head)), scales);
    for (i64 r = 1; r < stream.num_repeat; ++r) move_row(reinterpret_cast<T1*>(to + r * stride), first);
}

/// Loads one run; `row` is the output row of the run's first position.
KVJIT_INLINE void load_run(const LoadStream& stream, const abi::TokenItem& item, const Run& run, i64 row) {
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

KVJIT_INLINE void load_item(const abi::LoadArgs& args, const abi::TokenItem& item) {
    const LoadStream key = {args.key, args.cache.key, args.cache.key_scale, args.num_repeat};
    const LoadStream value = {args.value, args.cache.value, args.cache.value_scale, args.num_repeat};
    const i64 first_row = index_at(args.keys.starts, item.sequence);
    for_each_run(table_row(args.table, item.sequence), item.begin, item.end, [&](const Run& run) {
        load_run(key, item, run, first_row + run.position);
        load_run(value, item, run, first_row + run.position);
    });
}

}  // namespace kvjit

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

extern "C" void kvjit_load(const kvjit::abi::LoadArgs* args, const kvjit::abi::TokenItem* item) {
    kvjit::load_item(*args, *item);
}
