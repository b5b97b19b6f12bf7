// Elements of tensors as float32 vectors.
#pragma once

#include "cpu/machine/bfloat16.h"
#include "cpu/machine/half.h"
#include "cpu/machine/math.h"
#include "cpu/machine/simd.h"

namespace kvjit {

/// table[index % 16], lane by lane.
KVJIT_INLINE vf<16> lookup16(vf<16> table, vi<16> index) {
#ifdef __AVX512F__
    if constexpr (kHasAvx512)
        return __builtin_ia32_permvarsf512(table, index);
    else
#endif
    {
        vf<16> result;
#pragma clang loop unroll(full)
        for (int i = 0; i < 16; ++i) result[i] = table[index[i] & 15];
        return result;
    }
}

/// N int4 codes from N/2 bytes, as int8.
template <int N>
KVJIT_INLINE vec<i8, N> unpack_nibbles(const i4x2_t* p) {
    const vec<u8, N / 2> bytes = load_raw<u8, N / 2>(p);
    const vec<u8, N> nibbles = interleave<u8, N / 2>(bytes & 15, bytes >> 4);
    return __builtin_bit_cast(vec<i8, N>, (nibbles ^ 8) - 8);
}

// load<N>(p): N consecutive elements as float32; the codes of a quantised row. For i4x2_t the first element's number is
// even.

template <int N>
KVJIT_INLINE vf<N> load(const float* p) {
    return load_raw<float, N>(p);
}

template <int N>
KVJIT_INLINE vf<N> load(const f16_t* p) {
    return half_to_float<N>(load_raw<u16, N>(p));
}

template <int N>
KVJIT_INLINE vf<N> load(const bf16_t* p) {
    return bfloat16_to_float<N>(load_raw<u16, N>(p));
}

template <int N>
KVJIT_INLINE vf<N> load(const i8_t* p) {
    return __builtin_convertvector(load_raw<i8, N>(p), vf<N>);
}

template <int N>
KVJIT_INLINE vf<N> load(const i4x2_t* p) {
    if constexpr (kHasAvx512 && N == 16) {
        // Each 64-bit lane has a byte, and in its upper half the byte's high nibble: lookup16 uses the low 4 bits only.
        const vec<u64, 8> bytes = __builtin_convertvector(load_raw<u8, 8>(p), vec<u64, 8>);
        const vf<16> codes = {0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1};
        return lookup16(codes, __builtin_bit_cast(vi<16>, bytes | bytes << 28));
    } else {
        return __builtin_convertvector(unpack_nibbles<N>(p), vf<N>);
    }
}

// store<N>(p, v): v to N consecutive elements, each rounded once, to nearest even.

template <int N>
KVJIT_INLINE void store(float* p, vf<N> v) {
    store_raw<float, N>(p, v);
}

template <int N>
KVJIT_INLINE void store(f16_t* p, vf<N> v) {
    store_raw<u16, N>(p, float_to_half<N>(v));
}

template <int N>
KVJIT_INLINE void store(bf16_t* p, vf<N> v) {
    store_raw<u16, N>(p, float_to_bfloat16<N>(v));
}

KVJIT_INLINE float load_one(const float* p) {
    return *p;
}
KVJIT_INLINE float load_one(const f16_t* p) {
    return half_to_float<4>(vec<u16, 4>(p->bits))[0];
}
KVJIT_INLINE float load_one(const bf16_t* p) {
    return __builtin_bit_cast(float, static_cast<u32>(p->bits) << 16);
}
template <int N>
KVJIT_INLINE vf<N> load_splat(const float* p) {
    return vf<N>(*p);
}
template <int N>
KVJIT_INLINE vf<N> load_splat(const f16_t* p) {
    // Converting N halves costs no more than one, and a splat from memory costs less than one between registers.
    if constexpr (kHasF16c)
        return half_to_float<N>(vec<u16, N>(p->bits));
    else
        return vf<N>(load_one(p));
}
template <int N>
KVJIT_INLINE vf<N> load_splat(const bf16_t* p) {
    return vf<N>(load_one(p));
}

/// kCount elements from p on, then zeros.
template <int N, int kCount, class T>
KVJIT_INLINE vf<N> load_first(const T* p) {
    if constexpr (kCount == N)
        return load<N>(p);
    else if constexpr (kCount > N / 2)
        return join<float, N / 2>(load<N / 2>(p), load_first<N / 2, kCount - N / 2>(p + N / 2));
    else
        return join<float, N / 2>(load_first<N / 2, kCount>(p), vf<N / 2>(0.0f));
}

/// `p` moved on by `elements` elements of its row.
template <class T>
KVJIT_INLINE T* advance(T* p, i64 elements) {
    if constexpr (kSame<const T, const i4x2_t>)
        return p + elements / 2;
    else
        return p + elements;
}

}  // namespace kvjit
