// Decode's quantised keys and values where a scale is one for a multiple of 32 elements. Scales then stay out of matrix
// products, whose operands are codes alone: those of keys multiply sums of products, those of values probabilities.
#pragma once

#include "cuda/attend/mma/decode_ring.h"
#include "cuda/attend/mma/operands.h"
#include "cuda/attend/mma/softmax.h"
#include "cuda/shape.h"

namespace kvjit {

inline constexpr bool kScalesApart = mma_scales_apart(kFormat);

// ---- Codes of keys -------------------------------------------------------------------------------------------------
//
// As float16 they take no arithmetic: a code plus 128 isn't negative, and as a float16's bits it is a subnormal number,
// which counts units of 2^-24. A sum of products with such numbers is too large by 128 times the sum of the queries, so
// it begins with the negative of that (FirstSums).
//
// int4's codes are taken 16 times as large. Tensor cores drop digits of a sum relative to its operands' exponents,
// which are the same for all subnormal numbers: larger ones lose less.

inline constexpr bool kSubnormalKeys = kScalesApart && !kBfloat16;

/// What products are to be multiplied by.
inline constexpr float kProductUnit = !kSubnormalKeys ? kFragmentUnit : kQuantBit == 4 ? 1048576.0f : 16777216.0f;

/// A pair of what 128 is as subnormal number, negative.
inline constexpr u32 kMinus128 = 0x80808080;

/// Makes subnormal numbers of the codes of a key's fragment, in the order of widen_codes.
KVJIT_INLINE void shift_codes(u32 (&pairs)[4], const u32 (&words)[2]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) pairs[i] = permute_bytes(words[i / 2] ^ 0x80808080, 0, i % 2 == 0 ? 0x4140 : 0x4342);
}
KVJIT_INLINE void shift_codes(u32 (&pairs)[4], const u32 (&words)[1]) {
#pragma unroll
    for (int i = 0; i < 4; ++i)
        pairs[i] = and_xor(i == 0 ? words[0] << 4 : words[0] >> 4 * (i - 1), 0x00f000f0, 0x00800080);
}
KVJIT_INLINE void shift_codes(u32 (&)[4], const u32 (&)[4]) {}  // of keys that aren't quantised: never called

/// Loads a key's fragment as the numbers that products take.
KVJIT_INLINE void load_key_numbers(u32 (&pairs)[4], const char* codes) {
    if constexpr (!kSubnormalKeys) return load_key_codes(pairs, codes);
    u32 words[kFragmentWords];
    load_fragment(words, codes);
    shift_codes(pairs, words);
}

// ---- Probabilities ------------------------------------------------------------------------------------------------

/// Their headroom until fit_headroom lowers it. Where scales multiply them, a scale less than 2 and a rounded base may
/// each add a factor of 2.
inline constexpr float kFirstHeadroom = kScalesApart && !kBfloat16 ? kHeadroom - 1 : kHeadroom;

// ---- Codes of values -----------------------------------------------------------------------------------------------

/// Neighbouring elements of a value that a lane loads, of each 8 * kValueSpan; these share a scale if scales are apart.
inline constexpr int kValueSpan = kScalesApart && kQuantGroup % 64 != 0 ? 4 : 8;
inline constexpr int kValueSpanBytes = kFragmentBytes * kValueSpan / kFragment;
inline constexpr int kSpanWords = (kValueSpanBytes + 3) / 4;

KVJIT_INLINE void load_span(u32 (&words)[kSpanWords], const char* codes) {
    if constexpr (kValueSpanBytes == 2)
        words[0] = *reinterpret_cast<const u16*>(codes);
    else
        load_fragment(words, codes);
}

/// Codes of elements 2*i and 2*i + 1 of two values, as first_bytes and last_bytes, or even_nibbles and odd_nibbles,
/// take them.
KVJIT_INLINE u32 codes_of_two(const u32 (&a)[kSpanWords], const u32 (&b)[kSpanWords], int i) {
    if constexpr (kQuantBit == 8) return permute_bytes(a[i / 2], b[i / 2], i % 2 == 0 ? 0x5140 : 0x7362);
    return (i < 2 ? pair_lows(a[0], b[0]) : pair_highs(a[0], b[0])) >> 8 * (i % 2);
}

/// Pair i is element i of the span at `codes` and of that in the next row.
template <int kRowStride>
KVJIT_INLINE void load_value_codes(u32 (&pairs)[kValueSpan], const char* codes) {
    u32 a[kSpanWords], b[kSpanWords];
    load_span(a, codes);
    load_span(b, codes + kRowStride);
#pragma unroll
    for (int i = 0; i < kValueSpan / 2; ++i) {
        const u32 both = codes_of_two(a, b, i);
        pairs[2 * i] = kQuantBit == 8 ? first_bytes(both) : even_nibbles(both);
        pairs[2 * i + 1] = kQuantBit == 8 ? last_bytes(both) : odd_nibbles(both);
    }
}

/// Multiplies pairs by the scales of both rows.
template <int kScaleStride, int kCount>
KVJIT_INLINE void scale_value_pairs(u32 (&pairs)[kCount], const T3* scales) {
    const FragmentScales a = load_scales(scales), b = load_scales(scales + kScaleStride / sizeof(T3));
#pragma unroll
    for (int i = 0; i < kCount; ++i)
        pairs[i] = i < kCount / 2 ? scale_pair(pairs[i], a.first, b.first) : scale_pair(pairs[i], a.last, b.last);
}

// ---- Scales of two neighbouring keys -------------------------------------------------------------------------------

inline constexpr int kApartScales = kScalesApart ? kScalesPerRow : 1;  // of a row, up to 8

/// Those of T1 stay as they are loaded: row by row, or, where a row has one, the two keys' as a pair.
template <bool kPacked>
struct PairScalesOf {
    static constexpr int kRows = kApartScales == 1 ? 1 : 2, kWords = kApartScales <= 2 ? 1 : kApartScales / 2;
    u32 words[kRows][kWords];  // an index "% kRows" stays valid where there is one row

    template <int kStride>
    KVJIT_INLINE void load(const char* scales) {
#pragma unroll
        for (int i = 0; i < kRows; ++i) load_fragment(words[i], scales + i * kStride);
    }
    /// Makes scales that are infinite NaN: so are sums of infinities of both signs.
    KVJIT_INLINE void refuse_infinity() {
        for_each([](u32& scales) { scales = fma_pairs(scales, 0, scales); });
    }
    /// Bits that are 0 if all scales are less than 2 in size.
    KVJIT_INLINE u32 large() {
        u32 bits = 0;
        for_each([&](u32& scales) { bits |= scales & 0x40004000; });
        return bits;
    }
    /// Makes scales 0 of keys whose half of `seen` is 0.
    KVJIT_INLINE void hide(u32 seen) {
        if constexpr (kRows == 1) {
            words[0][0] &= seen;
        } else {
#pragma unroll
            for (int w = 0; w < kWords; ++w) {
                words[0][w] = (seen & 0xffff) != 0 ? words[0][w] : 0;
                words[1 % kRows][w] = seen >> 16 != 0 ? words[1 % kRows][w] : 0;
            }
        }
    }
    KVJIT_INLINE float of(int i, int group) const {
        const u32 word = words[i % kRows][group / 2];
        return (kRows == 1 ? i : group % 2) == 0 ? low_of_pair(word) : high_of_pair(word);
    }
    /// A pair of the two keys' probabilities times their scales of `group`.
    KVJIT_INLINE u32 weigh(u32 probabilities, int group) const {
        if constexpr (kRows == 1) return multiply_pairs(probabilities, words[0][0]);
        const u32 first = words[0][group / 2], second = words[1 % kRows][group / 2];
        return multiply_pairs(probabilities, group % 2 == 0 ? pair_lows(first, second) : pair_highs(first, second));
    }

    template <class F>
    KVJIT_INLINE void for_each(F&& f) {
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
#pragma unroll
            for (int w = 0; w < kWords; ++w) f(words[i][w]);
        }
    }
};
template <>
struct PairScalesOf<false> {
    float scale[2][kApartScales];

    template <int kStride>
    KVJIT_INLINE void load(const char* scales) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
#pragma unroll
            for (int g = 0; g < kApartScales; ++g)
                scale[i][g] = load_one(reinterpret_cast<const T3*>(scales + i * kStride) + g);
        }
    }
    KVJIT_INLINE void refuse_infinity() {
        for_each([](float& each) { each = fma(each, 0.0f, each); });
    }
    KVJIT_INLINE u32 large() {
        u32 bits = 0;
        for_each([&](float& each) { bits |= __builtin_bit_cast(u32, each) & 0x40000000; });
        return bits;
    }
    KVJIT_INLINE void hide(u32 seen) {
#pragma unroll
        for (int g = 0; g < kApartScales; ++g) {
            scale[0][g] = (seen & 0xffff) != 0 ? scale[0][g] : 0.0f;
            scale[1][g] = seen >> 16 != 0 ? scale[1][g] : 0.0f;
        }
    }
    KVJIT_INLINE float of(int i, int group) const { return scale[i][group]; }
    KVJIT_INLINE u32 weigh(u32 probabilities, int group) const {
        return scale_pair(probabilities, scale[0][group], scale[1][group]);
    }

    template <class F>
    KVJIT_INLINE void for_each(F&& f) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
#pragma unroll
            for (int g = 0; g < kApartScales; ++g) f(scale[i][g]);
        }
    }
};
/// Of 16 bits are loaded at once, 2, 4 or 8 of a row; other types and numbers one by one.
using PairScales = PairScalesOf<kSame<T3, T1> && (kApartScales & (kApartScales - 1)) == 0>;

/// Of the lane's keys in each 8 of a tile, 2*lane_pair() and the next one.
struct TileScales {
    PairScales of_keys[kTileKeys / 8];

    template <int kStride>
    KVJIT_INLINE void load(const char* scales) {
#pragma unroll
        for (int n = 0; n < kTileKeys / 8; ++n)
            of_keys[n].template load<kStride>(scales + 2 * lane_pair() * kStride + 8 * n * kStride);
    }
    /// The largest scale without its sign; NaN if one is.
    KVJIT_INLINE float largest() const {
        float largest = 0.0f;
#pragma unroll
        for (const PairScales& each : of_keys) {
#pragma unroll
            for (int at = 0; at < 2 * kApartScales; ++at) {
                const u32 bits = __builtin_bit_cast(u32, each.of(at % 2, at / 2)) & 0x7fffffff;
                largest = max_nan(largest, __builtin_bit_cast(float, bits));
            }
        }
        return largest;
    }
};

}  // namespace kvjit
