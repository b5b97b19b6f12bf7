// Rows of the cache as float32 vectors.
#pragma once

#include "common/quant.h"
#include "cpu/machine/vector.h"

namespace kvjit {

template <class T, class V>
KVJIT_INLINE V round_to(V x) {
    constexpr int N = sizeof(V) / sizeof(float);
    if constexpr (kSame<T, f16_t>) {
        return half_to_float<N>(float_to_half<N>(x));
    } else if constexpr (kSame<T, bf16_t>) {
        return bfloat16_to_float<N>(float_to_bfloat16<N>(x));
    } else {
        static_assert(kSame<T, float>);
        return x;
    }
}

/// values[g], such as scales, for the quantisation group g of each of elements d..d+N-1. d is a multiple of N.
template <int N, class Row, class T>
KVJIT_INLINE vf<N> group_values(const T* values, int d) {
    constexpr int kGroup = Row::kQuantGroup;
    if constexpr (kGroup >= N)
        return load_splat<N>(values + d / kGroup);
    else
        return repeat_each<float, N, N / kGroup>(load<N / kGroup>(values + d / kGroup));
}

/// Elements d..d+N-1 of a cache row, dequantised: float(code) * float(scale). `scales` is unused without quantisation.
template <int N, class Row = CacheRow>
KVJIT_INLINE vf<N> load_cache(const typename Row::T2* row, const typename Row::T3* scales, int d) {
    const vf<N> codes = load<N>(advance(row, d));
    if constexpr (Row::kQuantised)
        return codes * group_values<N, Row>(scales, d);
    else
        return codes;
}

}  // namespace kvjit
