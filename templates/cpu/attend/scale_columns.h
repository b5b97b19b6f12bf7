// Scales of 16 keys or values: for each group a vector with a lane for each of them.
#pragma once

#include "cpu/attend/decode_tile.h"
#include "cpu/machine/bytes.h"

namespace kvjit {

template <int kBytes>
struct WordOf;
template <>
struct WordOf<2> {
    using Type = u16;
};
template <>
struct WordOf<4> {
    using Type = u32;
};
template <>
struct WordOf<8> {
    using Type = u64;
};

/// Scales are loaded by words of up to 8 bytes.
inline constexpr int kScaleBytes = kScalesPerRow * static_cast<int>(sizeof(T3));
inline constexpr int kScaleWordBytes = kScaleBytes % 8 == 0 ? 8 : kScaleBytes % 4 == 0 ? 4 : 2;
inline constexpr int kWordScales = kScaleWordBytes / static_cast<int>(sizeof(T3));
using ScaleWord = WordOf<kScaleWordBytes>::Type;
using ScaleBits = WordOf<static_cast<int>(sizeof(T3))>::Type;

template <class Bits>
KVJIT_INLINE vf<16> floats_of(vec<Bits, 16> scales) {
    if constexpr (kSame<Bits, u32>)
        return __builtin_bit_cast(vf<16>, scales);
    else if constexpr (kSame<T3, f16_t>)
        return half_to_float<16>(scales);
    else
        return bfloat16_to_float<16>(scales);
}

template <int kWidth, int kNumber, int... I>
KVJIT_INLINE vf<16> every_scale(vec<ScaleBits, 16 * kWidth> scales, Sequence<int, I...>) {
    return floats_of<ScaleBits>(__builtin_shufflevector(scales, scales, (I * kWidth + kNumber)...));
}
/// to[g][k] = scale g of the k-th kWidth ones. An infinite one becomes NaN: products with codes would be of either
/// kind, sums of them NaN.
template <int kWidth, int kNumber = 0>
KVJIT_INLINE void store_scales(float (*to)[16], vec<ScaleBits, 16 * kWidth> scales) {
    const vf<16> group = every_scale<kWidth, kNumber>(scales, Lanes<16>{});
    store<16>(to[kNumber], fma<16>(group, vf<16>(0.0f), group));
    if constexpr (kNumber + 1 < kWidth) store_scales<kWidth, kNumber + 1>(to, scales);
}

/// Whether the scales of 16 rows from `at` on follow each other in memory.
KVJIT_INLINE bool are_neighbours(const ChunkRows& rows, i64 at) {
    const vec<i64, 16> places = kScaleBytes * vec<i64, 16>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const vec<i64, 16> addresses = load_raw<i64, 16>(rows.scale + at);
    return __builtin_reduce_and(addresses == places + reinterpret_cast<i64>(rows.scale[at]));
}

/// to[g][k] = scale g of row at+k, while those of later rows are prefetched.
KVJIT_INLINE void load_scales(float (*to)[16], const ChunkRows& rows, i64 at, i64 head) {
#pragma clang loop unroll(full)
    for (int k = 0; k < 16; k += 4) prefetch_far(rows.scales(at + kAhead + k, head));
    constexpr bool kFew = kScaleBytes <= 16;  // else shuffles of so many would take as long as single loads
    if constexpr (kFew) {
        if (are_neighbours(rows, at))
            return store_scales<kScalesPerRow>(to, load_raw<ScaleBits, 16 * kScalesPerRow>(rows.scales(at, head)));
    }
    const char* row[16];
#pragma clang loop unroll(full)
    for (int k = 0; k < 16; ++k) row[k] = reinterpret_cast<const char*>(rows.scales(at + k, head));
#pragma clang loop unroll(disable)
    for (int byte = 0; byte < kScaleBytes; byte += kScaleWordBytes) {
        const auto words = load_column<ScaleWord>(row, byte);
        store_scales<kWordScales>(to + byte / static_cast<int>(sizeof(T3)),
                                  __builtin_bit_cast(vec<ScaleBits, 16 * kWordScales>, words));
    }
}

}  // namespace kvjit
