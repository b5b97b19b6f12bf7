// store: new keys and values go to their slots, quantised, converted or moved (docs/semantics.md, sections 2, 5 and 6).
#include "common/abi.h"
#include "common/quant.h"
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
// Groups are whole lanes, and either lie within 32 of them or are the row.
static_assert(kQuantGroup == kHeadDim || (kQuantGroup % kPiece == 0 && kWarpSize % (kQuantGroup / kPiece) == 0));

// ---- Quantising ----------------------------------------------------------------------------------------------------

/// |x| as integers, which order as the floats do, with NaN above infinity: a maximum keeps every fault.
KVJIT_INLINE u32 magnitude_bits(float x) {
    return __builtin_bit_cast(u32, x) & 0x7fffffff;
}

KVJIT_INLINE u32 larger(u32 a, u32 b) {
    return a > b ? a : b;
}

/// The largest magnitudes of groups: maxima[i] is a piece's own, and becomes that of its group.
KVJIT_INLINE void spread_maxima(u32 (&maxima)[kRounds]) {
    constexpr bool kWhole = kQuantGroup == kHeadDim;
    constexpr i32 kSpan = kWhole ? kWarpSize : kQuantGroup / kPiece;  // lanes
    if constexpr (kWhole) {
        for (int i = 1; i < kRounds; ++i) maxima[0] = larger(maxima[0], maxima[i]);
        for (int i = 1; i < kRounds; ++i) maxima[i] = maxima[0];
    }
#pragma unroll
    for (int i = 0; i < kRounds; ++i) {
#pragma unroll
        for (i32 mask = 1; mask < kSpan; mask *= 2) maxima[i] = larger(maxima[i], shuffle_xor(maxima[i], mask));
    }
}

/// A scale that isn't a number has the same bits on every backend.
KVJIT_INLINE void store_scale(float* to, float scale) {
    *to = scale;
}
KVJIT_INLINE void store_scale(f16_t* to, float scale) {
    to->bits = scale == scale ? float_to_half(scale) : static_cast<u16>(element_of<f16_t>().quiet_nan);
}

/// Four codes. A code sits in the low bits of quant_code_magic's result.
template <class To>
KVJIT_INLINE void store_codes(char* to, const float (&x)[kPiece], float scale) {
    constexpr int kBits = kSame<To, i4x2_t> ? 4 : 8;
    u32 word[1] = {0};
#pragma unroll
    for (int i = 0; i < kPiece; ++i) {
        const u32 code = __builtin_bit_cast(u32, quant_code_magic(x[i], scale)) & ((1 << kBits) - 1);
        word[0] |= code << (i * kBits);
    }
    store_bytes<kPiece * kBits / 8>(to, word);
}

/// The warp calls it together.
template <class To, class From>
KVJIT_INLINE void quantise_row(char* codes, T3* scales, const char* from) {
    float x[kRounds][kPiece] = {};
    u32 maxima[kRounds] = {};
    for_each_piece([&](i32 d, int i) {
        load_elements<From>(x[i], from, d);
        for (int k = 0; k < kPiece; ++k) maxima[i] = larger(maxima[i], magnitude_bits(x[i][k]));
    });
    spread_maxima(maxima);
    for_each_piece([&](i32 d, int i) {
        const float scale = quant_scale(__builtin_bit_cast(float, maxima[i]));
        if (d % kQuantGroup == 0) store_scale(scales + d / kQuantGroup, scale);
        store_codes<To>(codes + bytes_of<To>(d), x[i], scale);
    });
}

/// A row of T1 to its slot of T2.
template <class To, class From>
KVJIT_INLINE void encode_row(char* to, T3* scales, const char* from) {
    if constexpr (kQuantised) {
        quantise_row<To, From>(to, scales, from);
    } else if constexpr (kSame<To, From>) {
        move_row<To>(to, from);
    } else {
        for_each_piece([&](i32 d, int) {
            float x[kPiece];
            load_elements<From>(x, from, d);
            store_elements(Of<To>{}, to + bytes_of<To>(d), x);
        });
    }
}

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
    encode_row<T2, T1>(slot_address(to, slot.entry.codes, slot.token, place.head), scales, from);
}

}  // namespace kvjit

// ---- 7. Entry point ------------------------------------------------------------------------------------------------

KVJIT_ENTRY(kvjit::kTokenShape.threads, kvjit::kTokenShape.blocks_per_sm)
kvjit_store(KVJIT_PARAM(kvjit::abi::CudaStoreArgs) args) {
    kvjit::store_row(args);
}
