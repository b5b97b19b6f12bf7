// Conversion between float16 and float32, correctly rounded for every input: by F16C where the target has it, else by
// integers, since Clang would call __extendhfsf2.
#pragma once

#include "cpu/machine/simd.h"

namespace kvjit {

/// Bits of binary16 (in 32-bit lanes) to float32. A signalling NaN becomes quiet, as by F16C's instruction.
template <int N>
KVJIT_INLINE vf<N> half_to_float_by_integers(vi<N> half) {
    const vi<N> sign = (half & 0x8000) << 16;
    const vi<N> rest = half & 0x7fff;
    const vi<N> shifted = rest << 13;
    const vi<N> normal = shifted + (112 << 23);
    const vi<N> special = (shifted + (224 << 23)) | (rest > 0x7c00 ? vi<N>(0x400000) : vi<N>(0));
    const vi<N> subnormal = bits_of<N>(__builtin_convertvector(rest, vf<N>) * 0x1p-24f);
    const vi<N> finite = rest < 0x0400 ? subnormal : normal;
    return from_bits<N>((rest < 0x7c00 ? finite : special) | sign);
}

/// float32 to bits of binary16 (in 32-bit lanes): to nearest even, overflow to infinity. A NaN becomes quiet and keeps
/// the upper bits of its payload.
template <int N>
KVJIT_INLINE vi<N> float_to_half_by_integers(vf<N> value) {
    const vi<N> bits = bits_of<N>(value);
    const vi<N> rest = bits & 0x7fffffff;
    const vi<N> sign = ((bits ^ rest) >> 16) & 0x8000;
    const vi<N> normal = (rest + 0xfff + ((rest >> 13) & 1) - (112 << 23)) >> 13;
    // 0.5 has an ulp of 2^-24, the weight of a subnormal half's last bit: the addition rounds as wanted.
    const vi<N> subnormal = bits_of<N>(from_bits<N>(rest) + 0.5f) - 0x3f000000;
    const vi<N> finite = rest < 0x38800000 ? subnormal : normal;
    const vi<N> nan = ((rest >> 13) & 0x3ff) | 0x7e00;
    const vi<N> special = rest > 0x7f800000 ? nan : vi<N>(0x7c00);
    return (rest < 0x477ff000 ? finite : special) | sign;
}

template <int N>
KVJIT_INLINE vf<N> half_to_float(vec<u16, N> half) {
    if constexpr (kHasF16c)
        return __builtin_convertvector(__builtin_bit_cast(vec<_Float16, N>, half), vf<N>);
    else
        return half_to_float_by_integers<N>(__builtin_convertvector(half, vi<N>));
}

template <int N>
KVJIT_INLINE vec<u16, N> float_to_half(vf<N> value) {
    if constexpr (kHasF16c)
        return __builtin_bit_cast(vec<u16, N>, __builtin_convertvector(value, vec<_Float16, N>));
    else
        return __builtin_convertvector(float_to_half_by_integers<N>(value), vec<u16, N>);
}

}  // namespace kvjit
