// Conversion between bfloat16 and float32, correctly rounded for every input: by integers on every target, since the
// instructions of AVX512-BF16 take subnormal numbers for 0, and Clang would call __truncsfbf2 elsewhere.
#pragma once

#include "cpu/machine/simd.h"

namespace kvjit {

template <int N>
KVJIT_INLINE vf<N> bfloat16_to_float(vec<u16, N> brain) {
    return from_bits<N>(__builtin_convertvector(brain, vi<N>) << 16);
}

/// To nearest even, overflow to infinity. A NaN becomes quiet and keeps the upper bits of its payload.
template <int N>
KVJIT_INLINE vec<u16, N> float_to_bfloat16(vf<N> value) {
    const vec<u32, N> bits = __builtin_bit_cast(vec<u32, N>, value);
    const vec<u32, N> rounded = bits + 0x7fff + (bits >> 16 & 1);
    const vec<u32, N> quiet = bits | 0x400000;
    return __builtin_convertvector((value == value ? rounded : quiet) >> 16, vec<u16, N>);
}

}  // namespace kvjit
