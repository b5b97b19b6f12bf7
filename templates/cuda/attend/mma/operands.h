// Fragments in this file are 8 neighbouring elements of a cache row as pairs of T1, operands of matrix products.
// (accumulator.h has those of accumulators.) A byte or nibble becomes a number by being put into the mantissa of a
// power of two, which is then subtracted: exact, and cheaper than any conversion.
//
// code * scale has more digits than T1 (decode_codes.h has what avoids such products). Values are rounded, an error as
// small as the output's own. Keys keep twice as many digits, since softmax would magnify the error: what rounding takes
// from a pair, its residual, has a matrix product of its own. That is all of them where scales are T1.
//
// Pairs hold element / kFragmentUnit, as code * scale of keys and values that were T1 may exceed T1's largest number by
// a little. Sums of products are multiplied by kFragmentUnit.
#pragma once

#include "common/quant.h"
#include "common/spec_block.h"
#include "cuda/attend/mma/pairs.h"
#include "cuda/cache/row_lanes.h"
#include "cuda/machine/contract.h"

namespace kvjit {

inline constexpr int kFragment = 8;
inline constexpr float kFragmentUnit = kQuantised ? 2.0f : 1.0f;
inline constexpr int kFragmentWords = kQuantBit == 8 ? 2 : kQuantBit == 4 ? 1 : 4;
inline constexpr int kFragmentBytes = kFragmentWords * 4;

KVJIT_INLINE void load_fragment(u32 (&to)[4], const char* from) {
    load16(to, from);
}
KVJIT_INLINE void load_fragment(u32 (&to)[2], const char* from) {
    load8(to, from);
}
KVJIT_INLINE void load_fragment(u32 (&to)[1], const char* from) {
    load4(to, from);
}

// ---- int8, of float16: code / 2 = (512 + (code + 128) / 2) - 576 ----------------------------------------------------
// bfloat16's mantissa takes 7 bits of a code: code / 2 = (64 + code % 128 / 2) - (code < 0 ? 128 : 64)

KVJIT_INLINE u32 widen_bytes(u32 codes, u32 selector) {
    if constexpr (kBfloat16) {
        const u32 bytes = permute_bytes(codes, 0, selector);
        return subtract_pairs((bytes & 0x007f007f) | 0x42804280, (bytes & 0x00800080) + 0x42804280);
    } else {
        return subtract_pairs(permute_bytes(codes ^ 0x80808080, 0x60606060, selector), 0x60806080);
    }
}
KVJIT_INLINE u32 first_bytes(u32 codes) {
    return widen_bytes(codes, 0x4140);
}
KVJIT_INLINE u32 last_bytes(u32 codes) {
    return widen_bytes(codes, 0x4342);
}

// ---- int4, of float16: code / 2 = (512 + (code + 8) / 2) - 516; odd nibbles, four bits further left: (32 + ...) - 36
// bfloat16: code / 2 = (64 + (code + 8) / 2) - 68

/// Nibbles 0 and 4.
KVJIT_INLINE u32 even_nibbles(u32 codes) {
    constexpr u32 kZero = kBfloat16 ? 0x42884288 : 0x60086008;
    return subtract_pairs(and_xor(codes, 0x000f000f, kZero), kZero);
}
/// Nibbles 1 and 5.
KVJIT_INLINE u32 odd_nibbles(u32 codes) {
    if constexpr (kBfloat16) return even_nibbles(codes >> 4);
    return subtract_pairs(and_xor(codes, 0x00f000f0, 0x50805080), 0x50805080);
}

// ---- Codes of a fragment, not yet scaled ---------------------------------------------------------------------------

/// Pairs of elements (0, 1), (2, 3), (4, 5), (6, 7); of int4 (0, 4), (1, 5), (2, 6), (3, 7).
KVJIT_INLINE void widen_codes(u32 (&pairs)[4], const u32 (&words)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) pairs[i] = words[i];
}
KVJIT_INLINE void widen_codes(u32 (&pairs)[4], const u32 (&words)[2]) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        pairs[2 * i] = first_bytes(words[i]);
        pairs[2 * i + 1] = last_bytes(words[i]);
    }
}
KVJIT_INLINE void widen_codes(u32 (&pairs)[4], const u32 (&words)[1]) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        pairs[2 * i] = even_nibbles(words[0] >> 8 * i);
        pairs[2 * i + 1] = odd_nibbles(words[0] >> 8 * i);
    }
}

/// Reorders pairs from int4's order to that of the elements, and back.
KVJIT_INLINE void deinterleave_pairs(u32 (&pairs)[4]) {
    const u32 even[2] = {pairs[0], pairs[2]}, odd[2] = {pairs[1], pairs[3]};
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        pairs[i] = pair_lows(even[i], odd[i]);
        pairs[2 + i] = pair_highs(even[i], odd[i]);
    }
}
KVJIT_INLINE void interleave_pairs(u32 (&pairs)[4]) {
    const u32 low[2] = {pairs[0], pairs[1]}, high[2] = {pairs[2], pairs[3]};
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        pairs[2 * i] = pair_lows(low[i], high[i]);
        pairs[2 * i + 1] = pair_highs(low[i], high[i]);
    }
}

// ---- Scales --------------------------------------------------------------------------------------------------------

KVJIT_INLINE const T3* scale_of(const char* scales, i32 element) {
    return reinterpret_cast<const T3*>(scales) + static_cast<u32>(element) / kQuantGroup;
}

KVJIT_INLINE u32 join_scales(T1 first, T1 second) {
    return first.bits | static_cast<u32>(second.bits) << 16;
}

/// The products of a pair's codes with their scales, rounded once.
KVJIT_INLINE u32 scale_pair(u32 codes, T1 first, T1 second) {
    return multiply_pairs(codes, join_scales(first, second));
}
KVJIT_INLINE u32 scale_pair(u32 codes, float first, float second) {
    return pack_pair(low_of_pair(codes) * first, high_of_pair(codes) * second);
}

/// A scale as codes are multiplied by it: as T1 if it is stored so, else as float32.
KVJIT_INLINE T1 load_factor(const T1* scale) {
    return *scale;
}
template <class T>
KVJIT_INLINE float load_factor(const T* scale) {
    return load_one(scale);
}
using Factor = decltype(load_factor(static_cast<const T3*>(nullptr)));

/// Scales of a fragment's first four and last four elements.
struct FragmentScales {
    Factor first, last;
};

/// `scales`: from that of the fragment's first element on.
KVJIT_INLINE FragmentScales load_scales(const T3* scales) {
    return {load_factor(scales), load_factor(scales + (kQuantGroup < kFragment ? 1 : 0))};
}

/// The scale of the first element of fragment first + own; first is a multiple of kSpan, and own less than it. Where
/// `first` is a constant, so is its part of the address.
template <int kSpan>
KVJIT_INLINE const T3* scale_of_fragment(const char* scales, int first, i32 own) {
    constexpr int kOfScale = kQuantGroup < kFragment ? 1 : kQuantGroup / kFragment,
                  kOfFragment = kFragment / kQuantGroup;
    const u32 within = kOfScale >= kSpan ? 0 : static_cast<u32>(own) / kOfScale;
    const T3* scale = reinterpret_cast<const T3*>(scales);
    return kQuantGroup < kFragment ? scale + own * kOfFragment + first * kOfFragment
                                   : scale + within + first / kOfScale;
}

// ---- A key's fragment, for products that sum over elements ---------------------------------------------------------

/// Each element is high + low; low, the residual, is used for quantised elements only.
struct KeyPairs {
    u32 high[4], low[4];
};

/// Splits codes * scales into high + low.
KVJIT_INLINE void split_pair(u32& high, u32& low, u32 codes, T1 first, T1 second) {
    const u32 scales = join_scales(first, second);
    high = multiply_pairs(codes, scales);
    low = fma_pairs(codes, scales, negate_pairs(high));
}
KVJIT_INLINE void split_pair(u32& high, u32& low, u32 codes, float first, float second) {
    const float a = low_of_pair(codes) * first, b = high_of_pair(codes) * second;
    high = pack_pair(a, b);
    low = pack_pair(a - low_of_pair(high), b - high_of_pair(high));
}

/// Loads the fragment's codes, in the order of widen_codes.
KVJIT_INLINE void load_key_codes(u32 (&pairs)[4], const char* codes) {
    u32 words[kFragmentWords];
    load_fragment(words, codes);
    widen_codes(pairs, words);
}

/// The same, with their scales.
KVJIT_INLINE void load_key_pairs(KeyPairs& pairs, const char* codes, const T3* scales) {
    load_key_codes(pairs.high, codes);
    if constexpr (kQuantised) {
        const FragmentScales scale = load_scales(scales);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const Factor first = kQuantBit == 4 || i < 2 ? scale.first : scale.last;
            const Factor second = kQuantBit == 4 || i >= 2 ? scale.last : scale.first;
            split_pair(pairs.high[i], pairs.low[i], pairs.high[i], first, second);
        }
    }
}

/// Loads elements element..element+7 of a row, in their order.
KVJIT_INLINE void load_ordered_pairs(KeyPairs& pairs, const char* codes, const char* scales, i32 element) {
    load_key_pairs(pairs, codes + element / kFragment * kFragmentBytes, scale_of(scales, element));
    if constexpr (kQuantBit == 4) {
        deinterleave_pairs(pairs.high);
        deinterleave_pairs(pairs.low);
    }
}

/// Loads a value's fragment in the order of the elements, each rounded once.
KVJIT_INLINE void load_ordered_pairs(u32 (&pairs)[4], const char* codes, const char* scales, i32 element) {
    KeyPairs key;
    load_ordered_pairs(key, codes, scales, element);
#pragma unroll
    for (int i = 0; i < 4; ++i) pairs[i] = key.high[i];
}

}  // namespace kvjit
