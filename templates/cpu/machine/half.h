// Conversion between float16 and float32, correctly rounded for every input: by F16C where the target has it, else by
// integers, since Clang would call __extendhfsf2.
#pragma once

#include "common/float_bits.h"
#include "cpu/machine/simd.h"

namespace kvjit {

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
