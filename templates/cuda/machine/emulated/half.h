// Conversion between float16 or bfloat16 and float32 on the CPU, correctly rounded for every input: float16's by F16C
// where the target has it, else by integers, since Clang would call a function.
#pragma once

#include "common/types.h"

namespace kvjit::emulation {

template <class T, int N>
using Lanes = T __attribute__((ext_vector_type(N)));
template <int N>
using Floats = Lanes<float, N>;
template <int N>
using Words = Lanes<i32, N>;

/// Bits of binary16 (in 32-bit lanes) to float32. A signalling NaN becomes quiet.
template <int N>
KVJIT_INLINE Floats<N> widen_by_integers(Words<N> half) {
    const Words<N> sign = (half & 0x8000) << 16;
    const Words<N> rest = half & 0x7fff;
    const Words<N> shifted = rest << 13;
    const Words<N> normal = shifted + (112 << 23);
    const Words<N> special = (shifted + (224 << 23)) | (rest > 0x7c00 ? Words<N>(0x400000) : Words<N>(0));
    const Words<N> subnormal = __builtin_bit_cast(Words<N>, __builtin_convertvector(rest, Floats<N>) * 0x1p-24f);
    const Words<N> finite = rest < 0x0400 ? subnormal : normal;
    return __builtin_bit_cast(Floats<N>, (rest < 0x7c00 ? finite : special) | sign);
}

/// float32 to bits of binary16 (in 32-bit lanes): to nearest even, overflow to infinity. A NaN becomes quiet and keeps
/// the upper bits of its payload.
template <int N>
KVJIT_INLINE Words<N> narrow_by_integers(Floats<N> value) {
    const Words<N> bits = __builtin_bit_cast(Words<N>, value);
    const Words<N> rest = bits & 0x7fffffff;
    const Words<N> sign = ((bits ^ rest) >> 16) & 0x8000;
    const Words<N> normal = (rest + 0xfff + ((rest >> 13) & 1) - (112 << 23)) >> 13;
    // 0.5 has an ulp of 2^-24, the weight of a subnormal half's last bit: the addition rounds as wanted.
    const Words<N> subnormal = __builtin_bit_cast(Words<N>, __builtin_bit_cast(Floats<N>, rest) + 0.5f) - 0x3f000000;
    const Words<N> finite = rest < 0x38800000 ? subnormal : normal;
    const Words<N> nan = ((rest >> 13) & 0x3ff) | 0x7e00;
    const Words<N> special = rest > 0x7f800000 ? nan : Words<N>(0x7c00);
    return (rest < 0x477ff000 ? finite : special) | sign;
}

template <int N>
KVJIT_INLINE Floats<N> widen(Lanes<u16, N> half) {
#ifdef __F16C__
    return __builtin_convertvector(__builtin_bit_cast(Lanes<_Float16, N>, half), Floats<N>);
#else
    return widen_by_integers<N>(__builtin_convertvector(half, Words<N>));
#endif
}

template <int N>
KVJIT_INLINE Lanes<u16, N> narrow(Floats<N> value) {
#ifdef __F16C__
    return __builtin_bit_cast(Lanes<u16, N>, __builtin_convertvector(value, Lanes<_Float16, N>));
#else
    return __builtin_convertvector(narrow_by_integers<N>(value), Lanes<u16, N>);
#endif
}

/// bfloat16 to float32.
KVJIT_INLINE float widen_bfloat16(u16 v) {
    return __builtin_bit_cast(float, static_cast<u32>(v) << 16);
}
/// float32 to bfloat16: to nearest even, overflow to infinity; a NaN becomes quiet.
KVJIT_INLINE u16 narrow_bfloat16(float v) {
    const u32 bits = __builtin_bit_cast(u32, v);
    return static_cast<u16>((v == v ? bits + 0x7fff + (bits >> 16 & 1) : bits | 0x400000) >> 16);
}

/// A register of two numbers of T, f16_t or bf16_t, the first one in its low bits.
template <class T = f16_t>
KVJIT_INLINE Floats<2> widen_pair(u32 pair) {
    if constexpr (kSame<T, f16_t>)
        return widen<2>(__builtin_bit_cast(Lanes<u16, 2>, pair));
    else
        return {widen_bfloat16(static_cast<u16>(pair)), widen_bfloat16(static_cast<u16>(pair >> 16))};
}
KVJIT_INLINE u32 narrow_pair(Floats<2> values) {
    return __builtin_bit_cast(u32, narrow<2>(values));
}

}  // namespace kvjit::emulation
