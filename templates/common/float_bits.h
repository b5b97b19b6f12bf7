// What float's bits tell, on CPUs: for their own kernels and the emulation of CUDA's.
#pragma once

#include "common/types.h"

namespace kvjit {

template <int N>
using FloatLanes = float __attribute__((ext_vector_type(N)));
template <int N>
using BitLanes = i32 __attribute__((ext_vector_type(N)));

/// Bits of binary16 (in 32-bit lanes) to float32. A signalling NaN becomes quiet, as by F16C's instruction.
template <int N>
KVJIT_INLINE FloatLanes<N> half_to_float_by_integers(BitLanes<N> half) {
    using Bits = BitLanes<N>;
    const Bits sign = (half & 0x8000) << 16;
    const Bits rest = half & 0x7fff;
    const Bits shifted = rest << 13;
    const Bits normal = shifted + (112 << 23);
    const Bits special = (shifted + (224 << 23)) | (rest > 0x7c00 ? Bits(0x400000) : Bits(0));
    const Bits subnormal = __builtin_bit_cast(Bits, __builtin_convertvector(rest, FloatLanes<N>) * 0x1p-24f);
    const Bits finite = rest < 0x0400 ? subnormal : normal;
    return __builtin_bit_cast(FloatLanes<N>, (rest < 0x7c00 ? finite : special) | sign);
}

/// float32 to bits of binary16 (in 32-bit lanes): to nearest even, overflow to infinity. A NaN becomes quiet and keeps
/// the upper bits of its payload.
template <int N>
KVJIT_INLINE BitLanes<N> float_to_half_by_integers(FloatLanes<N> value) {
    using Bits = BitLanes<N>;
    const Bits bits = __builtin_bit_cast(Bits, value);
    const Bits rest = bits & 0x7fffffff;
    const Bits sign = ((bits ^ rest) >> 16) & 0x8000;
    const Bits normal = (rest + 0xfff + ((rest >> 13) & 1) - (112 << 23)) >> 13;
    // 0.5 has an ulp of 2^-24, the weight of a subnormal half's last bit: the addition rounds as wanted.
    const Bits subnormal = __builtin_bit_cast(Bits, __builtin_bit_cast(FloatLanes<N>, rest) + 0.5f) - 0x3f000000;
    const Bits finite = rest < 0x38800000 ? subnormal : normal;
    const Bits nan = ((rest >> 13) & 0x3ff) | 0x7e00;
    const Bits special = rest > 0x7f800000 ? nan : Bits(0x7c00);
    return (rest < 0x477ff000 ? finite : special) | sign;
}

/// The logarithm of a positive finite number to a relative 1e-10, as exponent * log(2) + rest.
struct LogParts {
    double exponent, rest;
};
KVJIT_INLINE LogParts log_parts(float x) {
    // Every positive float32, subnormal ones included, is a normal float64, whose exponent can be read from its bits.
    const i64 bits = __builtin_bit_cast(i64, static_cast<double>(x));
    const i64 exponent = (bits - 0x3fe6a09e667f3bcd) >> 52;  // mantissa in sqrt(1/2)..sqrt(2)
    const double mantissa = __builtin_bit_cast(double, bits - (exponent << 52));
    const double s = (mantissa - 1) / (mantissa + 1);
    const double q = s * s;
    const double tail = 1.0 / 3 + q * (1.0 / 5 + q * (1.0 / 7 + q * (1.0 / 9 + q * (1.0 / 11 + q * (1.0 / 13)))));
    return {static_cast<double>(exponent), 2 * s * (1 + q * tail)};
}

}  // namespace kvjit
