// load: positions of the cache are read back, dequantised, converted or moved, each head num_repeat times
// (docs/semantics.md, sections 2, 5 and 6).
#include "common/abi.h"
#include "common/shape.h"
#include "common/slots.h"
#include "common/spec_block.h"
#include "common/types.h"
#include "cuda/cache_row.h"
#include "cuda/token_rows.h"

namespace kvjit {

// ---- 1. Contract ---------------------------------------------------------------------------------------------------

static_assert(kHeadDim % 8 == 0 && kHeadDim <= 256);
static_assert(kQuantBit == 0 || (kQuantBit == 8 && kSame<T2, i8_t>) || (kQuantBit == 4 && kSame<T2, i4x2_t>));
static_assert(!kQuantised || (kHeadDim % kQuantGroup == 0 && !kSame<T1, i8_t>));
static_assert(kQuantised || kSame<T1, i8_t> == kSame<T2, i8_t>);

// ---- Dequantising --------------------------------------------------------------------------------------------------

/// A slot of T2 to a row of T1, rounded once, and `repeat` times: the copies lie `stride` bytes apart.
template <class To, class From>
KVJIT_INLINE void decode_row(char* to, i64 stride, i64 repeat, const char* from, const char* scales) {
    for_each_piece([&](i32 d, int) {
        float x[kPiece];
        load_cache(x, from, scales, d);
        for (i64 r = 0; r < repeat; ++r) store_elements(Of<To>{}, to + r * stride + bytes_of<To>(d), x);
    });
}

template <class To, class From>
KVJIT_INLINE void load_slot(const abi::Rows& to, const TokenPlace& place, i64 repeat, const char* from,
                            const char* scales) {
    char* first = to.base + place.row * to.token_stride + place.head * repeat * to.head_stride;
    if constexpr (kSame<To, From>) {
        for (i64 r = 0; r < repeat; ++r) move_row<To>(first + r * to.head_stride, from);
    } else {
        decode_row<To, From>(first, to.head_stride, repeat, from, scales);
    }
}

// ---- 2. Work split: a warp for each (position, kv head, key or value) ----------------------------------------------

KVJIT_INLINE void load_row(const abi::CudaLoadArgs& args) {
    const TokenPlace place = place_of_warp(args.launch);
    const abi::Rows& to = place.value ? args.load.value : args.load.key;
    const abi::Indices& kvstarts = args.load.keys.starts;
    const i64 sequences = args.launch.batch_size;
    if (is_faulty(args.launch) || !to.base || place.row >= index_at(kvstarts, sequences)) return;
    const i64 b = find_sequence(sequences, place.row, [&](i64 s) { return index_at(kvstarts, s); });
    const Slot slot = slot_of(args.load.table, b, place.row - index_at(kvstarts, b));

    const abi::Cache& cache = args.load.cache;
    const abi::Plane& from = place.value ? cache.value : cache.key;
    const char* scales = nullptr;
    if constexpr (kQuantised) {
        const abi::Plane& scale = place.value ? cache.value_scale : cache.key_scale;
        scales = slot_address(scale, slot.entry.scales(), slot.token, place.head);
    }
    load_slot<T1, T2>(to, place, args.load.num_repeat, slot_address(from, slot.entry.codes, slot.token, place.head),
                      scales);
}

}  // namespace kvjit

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

KVJIT_ENTRY(kvjit::kTokenShape.threads, kvjit::kTokenShape.blocks_per_sm)
kvjit_load(KVJIT_PARAM(kvjit::abi::CudaLoadArgs) args) {
    kvjit::load_row(args);
}
