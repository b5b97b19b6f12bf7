// Transposing: rows of memory to lanes and back.
#pragma once

#include "cpu/machine/vector.h"

namespace kvjit {

template <int kStep, int N, int... I>
KVJIT_INLINE vf<N> take_first(vf<N> a, vf<N> b, Sequence<int, I...>) {
    return __builtin_shufflevector(a, b, (I & kStep ? I - kStep + N : I)...);
}
template <int kStep, int N, int... I>
KVJIT_INLINE vf<N> take_second(vf<N> a, vf<N> b, Sequence<int, I...>) {
    return __builtin_shufflevector(a, b, (I & kStep ? I + N : I + kStep)...);
}

/// Transposes N x N numbers: exchanges the off-diagonal blocks of kStep x kStep, then those of half that size.
template <int kStep, int N>
KVJIT_INLINE void transpose(vf<N> (&v)[N]) {
#pragma clang loop unroll(full)
    for (int i = 0; i < N; ++i) {
        if (i & kStep) continue;
        const vf<N> a = v[i], b = v[i + kStep];
        v[i] = take_first<kStep, N>(a, b, Lanes<N>{});
        v[i + kStep] = take_second<kStep, N>(a, b, Lanes<N>{});
    }
    if constexpr (kStep > 1) transpose<kStep / 2, N>(v);
}

/// to[c * to_stride + r] = from[r * from_stride + c] for kLanes x kLanes floats, or bits in their place.
KVJIT_NOINLINE void transpose_square(float* to, i64 to_stride, const float* from, i64 from_stride) {
    vf<kLanes> v[kLanes];
#pragma clang loop unroll(full)
    for (int i = 0; i < kLanes; ++i) v[i] = load<kLanes>(from + i * from_stride);
    transpose<kLanes / 2, kLanes>(v);
#pragma clang loop unroll(full)
    for (int i = 0; i < kLanes; ++i) store<kLanes>(to + i * to_stride, v[i]);
}

}  // namespace kvjit
