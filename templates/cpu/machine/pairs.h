// Products of bfloat16 numbers, two in a lane, for targets that have them at the rate of FMA.
#pragma once

#include "cpu/machine/vector.h"

namespace kvjit {

/// What a lane of a product's factors holds: a float, or a pair of bfloat16 numbers, the first in the lower half.
/// Queries and keys have pairs of neighbouring elements, probabilities and values those of an even key and the next.
template <bool kPairs>
struct FactorOf {
    using Type = float;
};
template <>
struct FactorOf<true> {
    using Type = u32;
};

/// sum + a*b, as fma().
template <int N>
KVJIT_INLINE vf<N> multiply_add(vf<N> a, vf<N> b, vf<N> sum) {
    return fma<N>(a, b, sum);
}

/// (sum + a1*b1) + a0*b0 in each lane of pairs (a0, a1) and (b0, b1), each addition rounded once, to nearest even.
/// Subnormal numbers count as 0, sums as well (Intel SDM, VDPBF16PS; AMD's processors give the same bits).
template <int N>
KVJIT_INLINE vf<N> multiply_add(vec<u32, N> a, vec<u32, N> b, vf<N> sum) {
    if constexpr (N > 16) {
        return join<float, N / 2>(
            multiply_add<N / 2>(low_half<u32, N>(a), low_half<u32, N>(b), low_half<float, N>(sum)),
            multiply_add<N / 2>(high_half<u32, N>(a), high_half<u32, N>(b), high_half<float, N>(sum)));
    } else {
#ifdef __AVX512BF16__
        static_assert(N == 16 || N == 8);
        using Pairs = vec<__bf16, 2 * N>;
        const Pairs first = __builtin_bit_cast(Pairs, a), second = __builtin_bit_cast(Pairs, b);
        if constexpr (N == 16)
            return __builtin_ia32_dpbf16ps_512(sum, first, second);
        else
            return __builtin_ia32_dpbf16ps_256(sum, first, second);
#else
        static_assert(N == 0, "the target has no products of bfloat16");
#endif
    }
}

/// N pairs: of the kCount numbers from p on, then zeros.
template <int N, int kCount>
KVJIT_INLINE vec<u32, N> load_pairs(const bf16_t* p) {
    if constexpr (kCount == 2 * N)
        return load_raw<u32, N>(p);
    else if constexpr (kCount > N)
        return join<u32, N / 2>(load_raw<u32, N / 2>(p), load_pairs<N / 2, kCount - N>(p + N));
    else
        return join<u32, N / 2>(load_pairs<N / 2, kCount>(p), vec<u32, N / 2>(0u));
}

/// The even (kPart 0) or the odd numbers of pairs, as floats.
template <int kPart, int N>
KVJIT_INLINE vf<N> every_other_of(vec<u32, N> pairs) {
    return __builtin_bit_cast(vf<N>, kPart == 0 ? pairs << 16 : pairs & 0xffff0000u);
}

/// The pairs (even[i], odd[i]).
template <int N>
KVJIT_INLINE vec<u32, N> pair_up(vec<u16, N> even, vec<u16, N> odd) {
    return __builtin_bit_cast(vec<u32, N>, interleave<u16, N>(even, odd));
}

/// To nearest even; subnormal numbers may become 0. (float_to_bfloat16 keeps them, and takes more instructions.)
template <int N>
KVJIT_INLINE vec<u16, N> round_to_bfloat16(vf<N> value) {
#ifdef __AVX512BF16__
    if constexpr (N == 16) {
        const vec<__bf16, 16> none = {};
        return __builtin_bit_cast(vec<u16, 16>,
                                  __builtin_ia32_cvtneps2bf16_512_mask(value, none, static_cast<u16>(-1)));
    }
#endif
    return float_to_bfloat16<N>(value);
}

template <int... I>
KVJIT_INLINE vec<__bf16, 32> interleave_halves(vec<__bf16, 32> v, Sequence<int, I...>) {
    return __builtin_shufflevector(v, v, (I / 2 + I % 2 * 16)...);
}
/// Pairs (low, high), rounded to nearest even; subnormal numbers may become 0.
template <int N>
KVJIT_INLINE vec<u32, N> round_pairs(vf<N> low, vf<N> high) {
#ifdef __AVX512BF16__
    if constexpr (N == 16)
        return __builtin_bit_cast(vec<u32, N>,
                                  interleave_halves(__builtin_ia32_cvtne2ps2bf16_512(high, low), Lanes<32>{}));
#endif
    return pair_up<N>(float_to_bfloat16<N>(low), float_to_bfloat16<N>(high));
}

}  // namespace kvjit
