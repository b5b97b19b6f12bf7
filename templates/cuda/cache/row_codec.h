// Rows of kHeadDim elements between tensors (T1) and the cache (T2 with scales T3), one row per warp.
#pragma once

#include "common/quant.h"
#include "cuda/cache/elements.h"
#include "cuda/machine/contract.h"
#include "cuda/shape.h"

namespace kvjit {

// ---- A row in pieces of four elements ------------------------------------------------------------------------------

inline constexpr int kPiece = 4;
inline constexpr int kPieces = kHeadDim / kPiece;
inline constexpr int kRounds = (kPieces + kWarpSize - 1) / kWarpSize;  // the most pieces of a lane
static_assert(kHeadDim % kPiece == 0);

/// First element of the lane's piece i; kHeadDim or more: there is no such piece.
KVJIT_INLINE i32 piece_element(int i) {
    return (i * kWarpSize + lane_index()) * kPiece;
}

/// f(first element, i) for the lane's pieces i.
template <class F>
KVJIT_INLINE void for_each_piece(F&& f) {
#pragma unroll
    for (int i = 0; i < kRounds; ++i) {
        if (piece_element(i) < kHeadDim) f(piece_element(i), i);
    }
}

template <class T>
KVJIT_INLINE void move_row(char* to, const char* from) {
    constexpr int kBytes = static_cast<int>(bytes_of<T>(kPiece));
    for_each_piece([&](i32 d, int) {
        u32 words[kWordsOf<kBytes>];
        load_bytes<kBytes>(words, from + bytes_of<T>(d));
        store_bytes<kBytes>(to + bytes_of<T>(d), words);
    });
}

// ---- Quantising ----------------------------------------------------------------------------------------------------

/// Bits of |x|. As integers they order as magnitudes do, with NaN above infinity: a maximum keeps every NaN.
KVJIT_INLINE u32 magnitude_bits(float x) {
    return __builtin_bit_cast(u32, x) & 0x7fffffff;
}

KVJIT_INLINE u32 larger(u32 a, u32 b) {
    return a > b ? a : b;
}

/// Replaces maxima[i], the largest magnitude of the lane's piece i, by the largest of that piece's group.
template <class Row>
KVJIT_INLINE void spread_maxima(u32 (&maxima)[kRounds]) {
    constexpr bool kWhole = Row::kQuantGroup == kHeadDim;
    constexpr i32 kSpan = kWhole ? kWarpSize : Row::kQuantGroup / kPiece;  // lanes
    // A group is whole pieces, and either the whole row or the pieces of a power of two of neighbouring lanes.
    static_assert(kWhole || (Row::kQuantGroup % kPiece == 0 && kWarpSize % kSpan == 0));
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

/// A scale that is NaN is stored with the same bits on every backend.
KVJIT_INLINE void store_scale(float* to, float scale) {
    *to = scale;
}
KVJIT_INLINE void store_scale(f16_t* to, float scale) {
    to->bits = scale == scale ? float_to_half(scale) : static_cast<u16>(element_of<f16_t>().quiet_nan);
}
KVJIT_INLINE void store_scale(bf16_t* to, float scale) {
    to->bits = scale == scale ? float_to_bfloat16(scale) : static_cast<u16>(element_of<bf16_t>().quiet_nan);
}

/// Stores four codes, the low bits of quant_code_magic's results; 0 where the scale is NaN.
template <class Row>
KVJIT_INLINE void store_codes(char* to, const float (&x)[kPiece], float scale) {
    constexpr int kBits = element_of<typename Row::T2>().bits;
    u32 word[1] = {0};
#pragma unroll
    for (int i = 0; i < kPiece; ++i) {
        const float magic = scale == scale ? quant_code_magic<Row>(x[i] / scale) : kRoundMagic;
        const u32 code = __builtin_bit_cast(u32, magic) & ((1 << kBits) - 1);
        word[0] |= code << (i * kBits);
    }
    store_bytes<kPiece * kBits / 8>(to, word);
}

// ---- Rows to and from the cache ------------------------------------------------------------------------------------

/// A lane's pieces of a row, as float32.
using RowPieces = float[kRounds][kPiece];

/// Quantises a row. The warp calls it together.
template <class Row>
KVJIT_INLINE void quantise_row(char* codes, typename Row::T3* scales, const RowPieces& x) {
    u32 maxima[kRounds] = {};
    for_each_piece([&](i32, int i) {
        for (int k = 0; k < kPiece; ++k) maxima[i] = larger(maxima[i], magnitude_bits(x[i][k]));
    });
    spread_maxima<Row>(maxima);
    for_each_piece([&](i32 d, int i) {
        const float scale = quant_scale<Row>(__builtin_bit_cast(float, maxima[i]));
        if (d % Row::kQuantGroup == 0) store_scale(scales + d / Row::kQuantGroup, scale);
        store_codes<Row>(codes + bytes_of<typename Row::T2>(d), x[i], scale);
    });
}

/// Writes a row's pieces to its slot. The warp calls it together.
template <class Row>
KVJIT_INLINE void encode_pieces(char* to, typename Row::T3* scales, const RowPieces& x) {
    using To = typename Row::T2;
    if constexpr (Row::kQuantised)
        quantise_row<Row>(to, scales, x);
    else
        for_each_piece([&](i32 d, int i) { store_elements(Of<To>{}, to + bytes_of<To>(d), x[i]); });
}

/// Writes a row of T1 to its slot. The warp calls it together.
template <class Row = CacheRow>
KVJIT_INLINE void encode_row(char* to, typename Row::T3* scales, const char* from) {
    if constexpr (kSame<typename Row::T2, T1>) {
        move_row<T1>(to, from);
    } else {
        RowPieces x = {};
        for_each_piece([&](i32 d, int i) { load_elements<T1>(x[i], from, d); });
        encode_pieces<Row>(to, scales, x);
    }
}

/// Reads a slot as a row of To, rounded once, and writes that `repeat` times, `stride` bytes apart.
template <class Row = CacheRow, class To = T1>
KVJIT_INLINE void decode_row(char* to, i64 stride, i64 repeat, const char* from, const char* scales) {
    for_each_piece([&](i32 d, int) {
        char* copy = to + bytes_of<To>(d);
        if constexpr (kSame<To, typename Row::T2>) {
            constexpr int kBytes = static_cast<int>(bytes_of<To>(kPiece));
            u32 words[kWordsOf<kBytes>];
            load_bytes<kBytes>(words, from + bytes_of<To>(d));
#pragma unroll 1
            for (i64 r = 0; r < repeat; ++r, copy += stride) store_bytes<kBytes>(copy, words);
        } else {
            float x[kPiece];
            load_cache<Row>(x, from, scales, d);
#pragma unroll 1
            for (i64 r = 0; r < repeat; ++r, copy += stride) store_elements(Of<To>{}, copy, x);
        }
    });
}

}  // namespace kvjit
