// Numbers as sums of bfloat16 numbers, whose products AMX adds in float32.
#pragma once

#include "cpu/machine/bfloat16.h"

namespace kvjit {

/// A number's first 8 significant bits, and the next 8: both of its sign. The second is at least 2^-126 where the
/// number isn't 0, so that a product with an infinity is infinite in both parts, or a NaN in both.
template <int N>
struct Halves {
    vec<u32, N> first, second;  // as bits of floats, the lower 16 of which are 0
};

inline constexpr u32 kUpperBits = 0xffff0000, kSignBit = 0x80000000;

template <int N>
KVJIT_INLINE Halves<N> split(vf<N> x) {
    const vec<u32, N> bits = __builtin_bit_cast(vec<u32, N>, x), first = bits & kUpperBits;
    const vf<N> rest = x - __builtin_bit_cast(vf<N>, first);  // NaN where x isn't finite
    const vec<u32, N> size =
        __builtin_bit_cast(vec<u32, N>, max_fast(from_bits<N>(bits_of<N>(rest) & 0x7fffffff), vf<N>(0x1p-126f)));
    const vec<u32, N> second = (bits & kSignBit) | (size + 0x8000 & kUpperBits);
    return {first, x == vf<N>(0.0f) ? vec<u32, N>(0u) : second};
}

/// x rounded to 8 significant bits, ties away from 0. A NaN may become anything.
template <int N>
KVJIT_INLINE vec<u32, N> round_upper(vf<N> x) {
    return __builtin_bit_cast(vec<u32, N>, x) + 0x8000 & kUpperBits;
}

/// The pairs (even[i], odd[i]) of numbers given as the upper halves of floats.
template <int N>
KVJIT_INLINE vec<u32, N> pair_upper(vec<u32, N> even, vec<u32, N> odd) {
#ifdef __AVX512BW__
    // Written as below, it would become a permutation, which takes longer.
    if constexpr (kHasAvx512 && N == 16) {
        using Words = vec<i16, 32>;
        return __builtin_bit_cast(vec<u32, N>,
                                  __builtin_ia32_selectw_512(0x55555555, __builtin_bit_cast(Words, even >> 16),
                                                             __builtin_bit_cast(Words, odd)));
    }
#endif
    return even >> 16 | (odd & kUpperBits);
}

/// The upper halves alone.
template <int N>
KVJIT_INLINE vec<u16, N> upper(vec<u32, N> bits) {
    return __builtin_convertvector(bits >> 16, vec<u16, N>);
}

}  // namespace kvjit
