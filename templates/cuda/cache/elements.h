// Elements of cache rows as float32, and back: load, store and attention by dot products.
#pragma once

#include "common/quant.h"
#include "common/spec_block.h"
#include "common/types.h"
#include "cuda/cache/row_lanes.h"

namespace kvjit {

template <class T, class V>
KVJIT_INLINE V round_to(V x) {
    if constexpr (kSame<T, f16_t>) {
        return half_to_float(float_to_half(x));
    } else if constexpr (kSame<T, bf16_t>) {
        return bfloat16_to_float(float_to_bfloat16(x));
    } else {
        static_assert(kSame<T, float>);
        return x;
    }
}

// ---- Bytes ---------------------------------------------------------------------------------------------------------

template <int kBytes>
inline constexpr int kWordsOf = (kBytes + 3) / 4;

/// Loads kBytes (a power of two up to 32) from `from`, which is aligned to min(kBytes, 16).
template <int kBytes>
KVJIT_INLINE void load_bytes(u32 (&to)[kWordsOf<kBytes>], const char* from) {
    if constexpr (kBytes == 1) {
        to[0] = *reinterpret_cast<const u8*>(from);
    } else if constexpr (kBytes == 2) {
        to[0] = *reinterpret_cast<const u16*>(from);
    } else if constexpr (kBytes == 4) {
        load4(to, from);
    } else if constexpr (kBytes == 8) {
        load8(to, from);
    } else if constexpr (kBytes == 16) {
        load16(to, from);
    } else {
        static_assert(kBytes == 32);
        u32 half[4];
        load16(half, from);
        for (int i = 0; i < 4; ++i) to[i] = half[i];
        load16(half, from + 16);
        for (int i = 0; i < 4; ++i) to[4 + i] = half[i];
    }
}

template <int kBytes>
KVJIT_INLINE void store_bytes(char* to, const u32 (&from)[kWordsOf<kBytes>]) {
    if constexpr (kBytes == 2) {
        *reinterpret_cast<u16*>(to) = static_cast<u16>(from[0]);
    } else if constexpr (kBytes == 4) {
        store4(to, from);
    } else if constexpr (kBytes == 8) {
        store8(to, from);
    } else {
        static_assert(kBytes == 16);
        store16(to, from);
    }
}

// ---- Elements ------------------------------------------------------------------------------------------------------

template <class T>
struct Of {};

/// Bits of 2^23: a float of this magnitude holds a small integer in its low bits.
inline constexpr u32 kIntegerBits = 0x4b000000;

/// Element i of those packed in `words`.
template <int kWords>
KVJIT_INLINE float element(Of<float>, const u32 (&words)[kWords], int i) {
    return __builtin_bit_cast(float, words[i]);
}
template <int kWords>
KVJIT_INLINE float element(Of<f16_t>, const u32 (&words)[kWords], int i) {
    return half_to_float(static_cast<u16>(words[i / 2] >> (i % 2 * 16)));
}
template <int kWords>
KVJIT_INLINE float element(Of<bf16_t>, const u32 (&words)[kWords], int i) {
    return __builtin_bit_cast(float, i % 2 ? words[i / 2] & 0xffff0000 : words[i / 2] << 16);
}
template <int kWords>
KVJIT_INLINE float element(Of<i8_t>, const u32 (&words)[kWords], int i) {
    // Byte i as the low bits of 2^23, biased by 128 so that it isn't negative.
    const u32 bits = permute_bytes(words[i / 4] ^ 0x80808080, kIntegerBits, 0x7440 | (i % 4));
    return __builtin_bit_cast(float, bits) - (8388608.0f + 128.0f);
}
template <int kWords>
KVJIT_INLINE float element(Of<i4x2_t>, const u32 (&words)[kWords], int i) {
    const u32 bits = (words[i / 8] >> (i % 8 * 4) & 15) ^ (kIntegerBits | 8);
    return __builtin_bit_cast(float, bits) - (8388608.0f + 8.0f);
}

/// Elements first..first+kCount-1 of a row of T; first is a multiple of kCount.
template <class T, int kCount>
KVJIT_INLINE void load_elements(float (&to)[kCount], const char* row, i32 first) {
    constexpr int kBytes = static_cast<int>(bytes_of<T>(kCount));
    u32 words[kWordsOf<kBytes>];
    load_bytes<kBytes>(words, row + bytes_of<T>(first));
#pragma unroll
    for (int i = 0; i < kCount; ++i) to[i] = element(Of<T>{}, words, i);
}

template <class Row>
KVJIT_INLINE float load_scale(const char* scales, i32 g) {
    return load_one(reinterpret_cast<const typename Row::T3*>(scales) + g);
}

/// The same elements of a cache row, dequantised: float(code) * float(scale). `scales` is unused without quantisation.
template <class Row = CacheRow, int kCount>
KVJIT_INLINE void load_cache(float (&to)[kCount], const char* row, const char* scales, i32 first) {
    constexpr int kGroup = Row::kQuantGroup;
    load_elements<typename Row::T2>(to, row, first);
    if constexpr (Row::kQuantised) {
        constexpr int kSpan = kCount < kGroup ? kCount : kGroup;  // elements that share a scale
#pragma unroll
        for (int i = 0; i < kCount; i += kSpan) {
            const float scale = load_scale<Row>(scales, (first + i) / kGroup);
#pragma unroll
            for (int j = 0; j < kSpan; ++j) to[i + j] *= scale;
        }
    }
}

/// Stores four elements of a floating-point type.
KVJIT_INLINE void store_elements(Of<float>, char* to, const float (&from)[4]) {
    u32 words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) words[i] = __builtin_bit_cast(u32, from[i]);
    store16(to, words);
}
KVJIT_INLINE void store_elements(Of<f16_t>, char* to, const float (&from)[4]) {
    const u32 words[2] = {pack_halves(from[0], from[1]), pack_halves(from[2], from[3])};
    store8(to, words);
}
KVJIT_INLINE void store_elements(Of<bf16_t>, char* to, const float (&from)[4]) {
    const u32 words[2] = {pack_bfloat16s(from[0], from[1]), pack_bfloat16s(from[2], from[3])};
    store8(to, words);
}

}  // namespace kvjit
