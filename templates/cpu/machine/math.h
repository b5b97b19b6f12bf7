// exp and log, without calls, tables or conversions that could be undefined.
#pragma once

#include "cpu/machine/simd.h"

namespace kvjit {

/// value * 2^n for integral n in -252..252, rounded once; one instruction with AVX-512.
template <int N>
KVJIT_INLINE vf<N> scale_by_power(vf<N> value, vf<N> n) {
#ifdef __AVX512F__
    if constexpr (kHasAvx512 && N == 16)
        return __builtin_ia32_scalefps512_mask(value, n, value, static_cast<u16>(-1), 4);
    else
#endif
    {
        // Two factors, so that neither leaves the exponent's range; only the second product can round.
        const vi<N> exponent = bits_of<N>(n + kRoundMagic) - kRoundMagicBits;
        const vi<N> half = exponent >> 1;
        return value * from_bits<N>((half + 127) << 23) * from_bits<N>((exponent - half + 127) << 23);
    }
}

/// e^r for |r| <= ln(2)/2 * (1 + 2^-20).
template <int N>
KVJIT_INLINE vf<N> exp_reduced(vf<N> r) {
    vf<N> p = vf<N>(1.0f / 5040);
    p = fma<N>(p, r, vf<N>(1.0f / 720));
    p = fma<N>(p, r, vf<N>(1.0f / 120));
    p = fma<N>(p, r, vf<N>(1.0f / 24));
    p = fma<N>(p, r, vf<N>(1.0f / 6));
    p = fma<N>(p, r, vf<N>(0.5f));
    p = fma<N>(p, r, vf<N>(1.0f));
    return fma<N>(p, r, vf<N>(1.0f));
}

template <int N>
KVJIT_INLINE vf<N> nearest_integer(vf<N> x) {
    const vf<N> shifted = x + kRoundMagic;
    return shifted - kRoundMagic;
}

/// e^x to 2 ulp; 0 where it is below 2^-126, since subnormal results cost many processors a hundred cycles.
/// exp(-inf) == 0, exp(0) == 1, exp(inf) == inf, NaN stays.
template <int N>
KVJIT_INLINE vf<N> exp(vf<N> x) {
    constexpr float kLeast = -0x1.5d589ep+6f;  // the least x whose e^x is at least 2^-126
    const auto vanishes = x < kLeast;
    // Beyond these bounds the result is 0 or infinite whatever x is. The order of operands keeps NaN.
    x = min_fast(vf<N>(89.0f), x);
    x = max_fast(vf<N>(kLeast), x);
    const vf<N> n = nearest_integer<N>(x * 0x1.715476p+0f);
    // ln(2) in two parts; the first has 9 bits, so that n times it is exact even without FMA.
    vf<N> r = fma<N>(n, vf<N>(-0x1.63p-1f), x);
    r = fma<N>(n, vf<N>(0x1.bd0106p-13f), r);
    return vanishes ? vf<N>(0.0f) : scale_by_power<N>(exp_reduced<N>(r), n);
}

/// e^x for x that is at most a little above 0: to a relative 2^-22 + 2^-25 |x|, in half the instructions of exp(). 0
/// where it is below 2^-126; NaN stays.
template <int N>
KVJIT_INLINE vf<N> exp_short(vf<N> x) {
    constexpr float kLog2e = 0x1.715476p+0f, kLeast = -0x1.5d589ep+6f;
    const auto vanishes = x < kLeast;
    // Products in place of AVX-512's scaling would be subnormal, though nobody reads them. NaN stays.
    if constexpr (!kHasAvx512) x = max_fast(vf<N>(kLeast), x);
    const vf<N> n = fma<N>(x, vf<N>(kLog2e), vf<N>(kRoundMagic)) - kRoundMagic;
    const vf<N> f = fma<N>(x, vf<N>(kLog2e), -n);  // in -1/2..1/2
    // 2^f, its largest relative error made least.
    vf<N> p = vf<N>(0x1.5c08e6p-10f);
    p = fma<N>(p, f, vf<N>(0x1.3d0c52p-7f));
    p = fma<N>(p, f, vf<N>(0x1.c6b6e4p-5f));
    p = fma<N>(p, f, vf<N>(0x1.ebf918p-3f));
    p = fma<N>(p, f, vf<N>(0x1.62e428p-1f));
    p = fma<N>(p, f, vf<N>(1.0f));
    return vanishes ? vf<N>(0.0f) : scale_by_power<N>(p, n);
}

template <class V>
KVJIT_INLINE V exp_of(V x) {
    return exp<static_cast<int>(sizeof(V) / sizeof(float))>(x);
}

template <class V>
KVJIT_INLINE V quotient_of(V a, V b) {
    return a / b;
}

/// log(x) to a relative 1e-10; -inf at 0, NaN for negative x.
KVJIT_INLINE double log(float x) {
    if (!(x > 0.0f) || x == kInfinity) return x == 0.0f ? -__builtin_inf() : x > 0.0f ? x : __builtin_nan("");
    const LogParts parts = log_parts(x);
    return parts.exponent * 0x1.62e42fefa39efp-1 + parts.rest;
}

}  // namespace kvjit
