// Vectors by Clang's extensions: one source for SSE, AVX2 and AVX-512. The compiler splits a vector wider than the
// target's. No function accesses memory beyond the lanes that it names, or needs more alignment than an element has.
#pragma once

#include "common/spec_block.h"
#include "common/types.h"
#include "cpu/machine/prologue.h"

namespace kvjit {

template <class E, int N>
using vec = E __attribute__((ext_vector_type(N)));
template <int N>
using vf = vec<float, N>;
template <int N>
using vi = vec<i32, N>;

/// Lanes of a vector by default. On 16-byte targets a vector is two registers, so that it has 8 lanes at least.
inline constexpr int kLanes = kVectorBytes == 64 ? 16 : 8;

template <class V>
struct [[gnu::packed, gnu::may_alias]] Unaligned {
    V value;
};

/// N elements of E from p, without conversion.
template <class E, int N>
KVJIT_INLINE vec<E, N> load_raw(const void* p) {
    return static_cast<const Unaligned<vec<E, N>>*>(p)->value;
}

/// All of v to p, without conversion.
template <class V>
KVJIT_INLINE void store_vector(void* p, V v) {
    static_cast<Unaligned<V>*>(p)->value = v;
}
template <class E, int N>
KVJIT_INLINE void store_raw(void* p, vec<E, N> v) {
    store_vector(p, v);
}

template <int N>
KVJIT_INLINE vi<N> bits_of(vf<N> v) {
    return __builtin_bit_cast(vi<N>, v);
}

template <int N>
KVJIT_INLINE vf<N> from_bits(vi<N> v) {
    return __builtin_bit_cast(vf<N>, v);
}

/// a*b + c, rounded once where the target has FMA, else twice. So results depend on the target, never on the optimiser.
template <int N>
KVJIT_INLINE vf<N> fma(vf<N> a, vf<N> b, vf<N> c) {
    if constexpr (kHasFma) {
        return __builtin_elementwise_fma(a, b, c);
    } else {
        const vf<N> product = a * b;
        return product + c;
    }
}

/// The larger of two; NaN if either is. (maxps alone drops a NaN in its first operand.)
template <class V>
KVJIT_INLINE V max_nan(V a, V b) {
    const V larger = a > b ? a : b;
    return a == a ? larger : a;
}

/// The larger of two; b if either is NaN. One instruction.
template <class V>
KVJIT_INLINE V max_fast(V a, V b) {
    return a > b ? a : b;
}

/// The smaller of two; b if either is NaN. One instruction.
template <class V>
KVJIT_INLINE V min_fast(V a, V b) {
    return a < b ? a : b;
}

// ---- Shuffles ----------------------------------------------------------------------------------------------------

template <class E, E... I>
struct Sequence {};
template <int N>
using Lanes = __make_integer_seq<Sequence, int, N>;

template <class E, int N, int... I>
KVJIT_INLINE vec<E, sizeof...(I)> low_lanes(vec<E, N> v, Sequence<int, I...>) {
    return __builtin_shufflevector(v, v, I...);
}
template <class E, int N, int... I>
KVJIT_INLINE vec<E, sizeof...(I)> high_lanes(vec<E, N> v, Sequence<int, I...>) {
    return __builtin_shufflevector(v, v, (N / 2 + I)...);
}

/// Lanes 0..N/2-1 and N/2..N-1.
template <class E, int N>
KVJIT_INLINE vec<E, N / 2> low_half(vec<E, N> v) {
    return low_lanes<E, N>(v, Lanes<N / 2>{});
}
template <class E, int N>
KVJIT_INLINE vec<E, N / 2> high_half(vec<E, N> v) {
    return high_lanes<E, N>(v, Lanes<N / 2>{});
}

template <class E, int N, int... I>
KVJIT_INLINE vec<E, 2 * N> join_lanes(vec<E, N> low, vec<E, N> high, Sequence<int, I...>) {
    return __builtin_shufflevector(low, high, I...);
}
/// The vector with these halves.
template <class E, int N>
KVJIT_INLINE vec<E, 2 * N> join(vec<E, N> low, vec<E, N> high) {
    return join_lanes<E, N>(low, high, Lanes<2 * N>{});
}

template <class E, int N, int M, int... I>
KVJIT_INLINE vec<E, N> repeat_lanes(vec<E, M> v, Sequence<int, I...>) {
    return __builtin_shufflevector(v, v, (I / (N / M))...);
}
/// Each of M lanes N/M times: lane i of the result is lane i / (N/M) of v.
template <class E, int N, int M>
KVJIT_INLINE vec<E, N> repeat_each(vec<E, M> v) {
    return repeat_lanes<E, N, M>(v, Lanes<N>{});
}

template <class E, int N, int M, int... I>
KVJIT_INLINE vec<E, M> stride_lanes(vec<E, N> v, Sequence<int, I...>) {
    return __builtin_shufflevector(v, v, (I * (N / M))...);
}
/// Every (N/M)th of N lanes.
template <class E, int N, int M>
KVJIT_INLINE vec<E, M> every(vec<E, N> v) {
    return stride_lanes<E, N, M>(v, Lanes<M>{});
}

template <class E, int N, int kStep, int... I>
KVJIT_INLINE vec<E, N> exchange_lanes(vec<E, N> v, Sequence<int, I...>) {
    return __builtin_shufflevector(v, v, (I ^ kStep)...);
}
/// Lane i of the result is lane i ^ kStep of v.
template <class E, int N, int kStep>
KVJIT_INLINE vec<E, N> exchange(vec<E, N> v) {
    return exchange_lanes<E, N, kStep>(v, Lanes<N>{});
}

template <class E, int N, int... I>
KVJIT_INLINE vec<E, 2 * N> interleave_lanes(vec<E, N> even, vec<E, N> odd, Sequence<int, I...>) {
    return __builtin_shufflevector(even, odd, (I / 2 + (I % 2) * N)...);
}
/// even[0], odd[0], even[1], odd[1], ...
template <class E, int N>
KVJIT_INLINE vec<E, 2 * N> interleave(vec<E, N> even, vec<E, N> odd) {
    return interleave_lanes<E, N>(even, odd, Lanes<2 * N>{});
}

// ---- Reductions, always by halves: the source fixes the order of additions -----------------------------------------

template <int N>
KVJIT_INLINE float sum_of(vf<N> v) {
    if constexpr (N == 2)
        return v[0] + v[1];
    else
        return sum_of<N / 2>(low_half<float, N>(v) + high_half<float, N>(v));
}

/// The largest lane; NaN lanes may get lost.
template <int N>
KVJIT_INLINE float max_of(vf<N> v) {
    if constexpr (N == 2)
        return max_fast(v[0], v[1]);
    else
        return max_of<N / 2>(max_fast(low_half<float, N>(v), high_half<float, N>(v)));
}

/// Halves N lanes until M are left, by the larger of lane i of either half.
template <class E, int N, int M>
KVJIT_INLINE vec<E, M> fold_max(vec<E, N> v) {
    if constexpr (N == M)
        return v;
    else
        return fold_max<E, N / 2, M>(max_fast(low_half<E, N>(v), high_half<E, N>(v)));
}

// ---- Walking a row -----------------------------------------------------------------------------------------------

/// Calls f.template operator()<N>(d) so that vectors d..d+N-1 cover 0..D-1 exactly: N is kLanes, and 8 for the last one
/// where kLanes doesn't divide D.
template <int D, class F>
KVJIT_INLINE void for_each_vector(F&& f) {
    static_assert(D % 8 == 0);
    constexpr int kMain = D - D % kLanes;
    for (int d = 0; d < kMain; d += kLanes) f.template operator()<kLanes>(d);
    if constexpr (kMain < D) f.template operator()<8>(kMain);
}

/// The same with vectors of kWidest lanes, then of half as many for the remainder, down to 8.
template <int kWidest, int D, class F>
KVJIT_INLINE void for_each_vector_of(F&& f, int begin = 0) {
    static_assert(D % 8 == 0 && kWidest >= 8);
    constexpr int kMain = D - D % kWidest;
    for (int d = 0; d < kMain; d += kWidest) f.template operator()<kWidest>(begin + d);
    if constexpr (kMain < D) for_each_vector_of<kWidest / 2, D - kMain>(f, begin + kMain);
}

/// for_each_vector without unrolling, for code off the hot path, which would take longer to compile than it saves.
template <int D, class F>
KVJIT_INLINE void for_each_vector_rolled(F&& f) {
    static_assert(D % 8 == 0);
    constexpr int kMain = D - D % kLanes;
#pragma clang loop unroll(disable)
    for (int d = 0; d < kMain; d += kLanes) f.template operator()<kLanes>(d);
    if constexpr (kMain < D) f.template operator()<8>(kMain);
}

/// Fetches a cache line into the first-level cache.
KVJIT_INLINE void prefetch(const void* p) {
    __builtin_prefetch(p, 0, 3);
}
/// Fetches it into the second-level cache, which can wait for more lines at a time.
KVJIT_INLINE void prefetch_far(const void* p) {
    __builtin_prefetch(p, 0, 2);
}

}  // namespace kvjit
