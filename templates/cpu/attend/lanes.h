// Cache rows as wide vectors in lane order, the order of elements that is cheapest to load. Queries are put into the
// same order, which dot products don't depend on; sums of values are put back into the elements' order at the end.
#pragma once

#include "cpu/cache/elements.h"
#include "cpu/machine/pairs.h"

namespace kvjit {

/// Whether factors are bfloat16 pairs, as they lie in queries and in the cache, in place of floats.
inline constexpr bool kPairs = kFastBfloat16 && kSame<T1, bf16_t> && kSame<T2, bf16_t>;

/// Lane orders of a block of kOrderLanes elements; of what is left at a row's end, of 8, or of 16 and then 8.
/// - halves: lane 2i holds element i and lane 2i+1 element 8+i. For int4 on AVX-512: a pair of lanes is the two halves
///   of a row's 8 bytes, shifted alike. The last 8 elements stay in order.
/// - evens and odds: the lower half of the lanes holds elements 0, 2, 4..., the upper one 1, 3, 5... For bfloat16: its
///   odd elements become floats where they lie, by clearing the even ones, and even ones by one shift.
/// - the elements' order elsewhere.
inline constexpr bool kHalvesOrder = kSame<T2, i4x2_t> && kHasAvx512 && kLanes == 16;
inline constexpr bool kEvenOddOrder = kSame<T2, bf16_t> && kHasAvx2 && !kPairs;
inline constexpr bool kOrdered = !kHalvesOrder && !kEvenOddOrder;
inline constexpr int kOrderLanes = kEvenOddOrder ? 2 * kLanes : kLanes;

/// The element that a lane of a block of kCount has.
template <int kCount>
constexpr int element_of_lane(int lane) {
    if constexpr (kEvenOddOrder) return lane % (kCount / 2) * 2 + lane / (kCount / 2);
    if constexpr (kHalvesOrder && kCount == 16) return lane / 2 + lane % 2 * 8;
    return lane;
}
template <int kCount>
constexpr int lane_of_element(int element) {
    if constexpr (kEvenOddOrder) return element / 2 + element % 2 * (kCount / 2);
    if constexpr (kHalvesOrder && kCount == 16) return element % 8 * 2 + element / 8;
    return element;
}

template <int N, int... I>
KVJIT_INLINE vf<N> pick_to_lanes(vf<N> v, Sequence<int, I...>) {
    return __builtin_shufflevector(v, v, element_of_lane<N>(I)...);
}
template <int N, int... I>
KVJIT_INLINE vf<N> pick_from_lanes(vf<N> v, Sequence<int, I...>) {
    return __builtin_shufflevector(v, v, lane_of_element<N>(I)...);
}
template <int N, int kGroupSize, int M, int... I>
KVJIT_INLINE vf<N> spread_lanes(vf<M> v, Sequence<int, I...>) {
    return __builtin_shufflevector(v, v, ((N < 16 ? I : I / 16 * 16 + element_of_lane<16>(I % 16)) / kGroupSize)...);
}

/// A block of N consecutive elements to lane order, and back.
template <int N>
KVJIT_INLINE vf<N> to_lanes(vf<N> elements) {
    return pick_to_lanes<N>(elements, Lanes<N>{});
}
template <int N>
KVJIT_INLINE vf<N> from_lanes(vf<N> lanes) {
    return pick_from_lanes<N>(lanes, Lanes<N>{});
}

/// values[g] for the quantisation group g of the element in each of lanes d..d+N-1. d is a multiple of N, or of 16.
template <int N, class T>
KVJIT_INLINE vf<N> group_lanes(const T* values, int d) {
    if constexpr (kQuantGroup >= N)
        return load_splat<N>(values + d / kQuantGroup);
    else
        return spread_lanes<N, kQuantGroup, N / kQuantGroup>(load<N / kQuantGroup>(values + d / kQuantGroup),
                                                             Lanes<N>{});
}

/// 8 int4 codes: each lane has all 4 bytes; a left shift and an arithmetic right shift leave its own nibble.
KVJIT_INLINE vf<8> shift_codes(const i4x2_t* p) {
    const vec<u32, 8> bytes = __builtin_bit_cast(u32, load_raw<u8, 4>(p));
    const vec<u32, 8> shifts = {28, 24, 20, 16, 12, 8, 4, 0};
    return __builtin_convertvector(__builtin_bit_cast(vi<8>, bytes << shifts) >> 28, vf<8>);
}

/// 16 int4 codes in lane order, by a table: an instruction less than by shifts.
KVJIT_INLINE vf<16> codes_by_table(const i4x2_t* p) {
    const vec<u64, 8> bytes = __builtin_bit_cast(u64, load_raw<u8, 8>(p));
    const vec<u32, 16> shifts = {0, 0, 4, 4, 8, 8, 12, 12, 16, 16, 20, 20, 24, 24, 28, 28};
    const vf<16> codes = {0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1};
    return lookup16(codes, __builtin_bit_cast(vi<16>, __builtin_bit_cast(vec<u32, 16>, bytes) >> shifts));
}

/// The codes of N elements, in lane order.
template <int N, class T>
KVJIT_INLINE vf<N> load_codes(const T* p) {
    if constexpr (kEvenOddOrder && N <= kOrderLanes) {
        const vec<u32, N / 2> pairs = load_raw<u32, N / 2>(p);
        return join<float, N / 2>(every_other_of<0, N / 2>(pairs), every_other_of<1, N / 2>(pairs));
    } else if constexpr (!kEvenOddOrder && !kSame<T, i4x2_t>) {
        return load<N>(p);
    } else if constexpr (N == 8) {
        return shift_codes(p);
    } else if constexpr (N == 16 && kHalvesOrder) {
        return codes_by_table(p);
    } else {
        return join<float, N / 2>(load_codes<N / 2>(p), load_codes<N / 2>(advance(p, N / 2)));
    }
}

/// Lanes d..d+N-1 of a cache row, dequantised.
template <int N, class T>
KVJIT_INLINE vf<N> load_lanes(const T2* row, const T* scales, int d) {
    const vf<N> codes = load_codes<N>(advance(row, d));
    if constexpr (kQuantised)
        return codes * group_lanes<N>(scales, d);
    else
        return codes;
}

/// to[i] = from[i] as float32, i < kCount.
template <int kCount, class T>
KVJIT_INLINE void widen(float* to, const T* from) {
    constexpr int N = kCount >= 16 ? 16 : kCount >= 8 ? 8 : kCount >= 4 ? 4 : kCount >= 2 ? 2 : 1;
    constexpr int kWhole = kCount - kCount % N;
#pragma clang loop unroll(disable)
    for (int i = 0; i < kWhole; i += N) {
        if constexpr (N == 1)
            to[i] = load_one(from + i);
        else
            store<N>(to + i, load<N>(from + i));
    }
    if constexpr (kWhole < kCount) widen<kCount - kWhole>(to + kWhole, from + kWhole);
}

}  // namespace kvjit
