// exp and log, without calls, tables or conversions that could be undefined.
#pragma once

#include "cpu/machine/simd.h"

namespace kvjit {

inline constexpr float kLog2e = 0x1.715476p+0f;  // log2(e)

/// value * 2^n for integral n in -252..252, rounded once. With AVX-512, where it is one instruction, any n will do, and
/// counts as the integer below.
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
    const vf<N> n = nearest_integer<N>(x * kLog2e);
    // ln(2) in two parts; the first has 9 bits, so that n times it is exact even without FMA.
    vf<N> r = fma<N>(n, vf<N>(-0x1.63p-1f), x);
    r = fma<N>(n, vf<N>(0x1.bd0106p-13f), r);
    return vanishes ? vf<N>(0.0f) : scale_by_power<N>(exp_reduced<N>(r), n);
}

/// The largest integer that is no larger than y. At all levels 2^y is made of the same numbers: AVX-512's VREDUCE would
/// take both steps for the fraction at once, but rounds it down.
template <int N>
KVJIT_INLINE vf<N> integer_below(vf<N> y) {
#ifdef __SSE4_1__
    return __builtin_elementwise_floor(y);
#else
    const vf<N> nearest = nearest_integer<N>(y);
    return nearest > y ? nearest - 1.0f : nearest;
#endif
}

/// 2^f for f from 0 to 1, 1 at 0; its largest relative error made least: 2^-23.3 for degree 5, 2^-13.5 for degree 3.
template <int N, int kDegree>
KVJIT_INLINE vf<N> exp2_fraction(vf<N> f) {
    static_assert(kDegree == 3 || kDegree == 5);
    vf<N> p;
    if constexpr (kDegree == 5) {
        p = fma<N>(vf<N>(0x1.e974fap-10f), f, vf<N>(0x1.277856p-7f));
        p = fma<N>(p, f, vf<N>(0x1.c91ce6p-5f));
        p = fma<N>(p, f, vf<N>(0x1.ebdb56p-3f));
        p = fma<N>(p, f, vf<N>(0x1.62e4bap-1f));
    } else {
        p = fma<N>(vf<N>(0x1.3baaa6p-4f), f, vf<N>(0x1.d2378ap-3f));
        p = fma<N>(p, f, vf<N>(0x1.63e658p-1f));
    }
    return fma<N>(p, f, vf<N>(1.0f));
}

/// The degree for probabilities: 2^-13.5 is little beside the 2^-8 that rounding them to bfloat16 may add.
constexpr int power_degree(bool rounded_to_bfloat16) {
    return rounded_to_bfloat16 ? 3 : 5;
}

/// 2^y for y up to 16, to a relative 2^-22, or 2^-13 for degree 3. 0 where it is below 2^-126;
/// NaN stays.
template <int N, int kDegree>
KVJIT_INLINE vf<N> exp2_short(vf<N> y) {
    const auto vanishes = y < -126.0f;
    // Products in place of AVX-512's scaling would be subnormal, though nobody reads them. NaN stays.
    if constexpr (!kHasAvx512) y = max_fast(vf<N>(-126.0f), y);
    const vf<N> whole = integer_below<N>(y);
    const vf<N> p = exp2_fraction<N, kDegree>(y - whole);
    return vanishes ? vf<N>(0.0f) : scale_by_power<N>(p, whole);
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
