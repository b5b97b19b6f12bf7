// Conversion between float16 or bfloat16 and float32 on the CPU, correctly rounded for every input: float16's by F16C
// where the target has it, else by integers, since Clang would call a function.
#pragma once

#include "common/float_bits.h"

namespace kvjit::emulation {

template <class T, int N>
using Lanes = T __attribute__((ext_vector_type(N)));
template <int N>
using Floats = FloatLanes<N>;
template <int N>
using Words = BitLanes<N>;

template <int N>
KVJIT_INLINE Floats<N> widen(Lanes<u16, N> half) {
#ifdef __F16C__
    return __builtin_convertvector(__builtin_bit_cast(Lanes<_Float16, N>, half), Floats<N>);
#else
    return half_to_float_by_integers<N>(__builtin_convertvector(half, Words<N>));
#endif
}

template <int N>
KVJIT_INLINE Lanes<u16, N> narrow(Floats<N> value) {
#ifdef __F16C__
    return __builtin_bit_cast(Lanes<u16, N>, __builtin_convertvector(value, Lanes<_Float16, N>));
#else
    return __builtin_convertvector(float_to_half_by_integers<N>(value), Lanes<u16, N>);
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
