// Rows of kHeadDim elements between tensors (T1) and the cache (T2 with scales T3).
#pragma once

#include "cpu/cache.h"

namespace kvjit {

/// Copies a row as it is.
template <class T>
KVJIT_INLINE void move_row(T* to, const T* from) {
    constexpr int kBytes = static_cast<int>(bytes_of<T>(kHeadDim));
    constexpr int kMain = kBytes - kBytes % kVectorBytes;
#pragma clang loop unroll(full)
    for (int i = 0; i < kMain; i += kVectorBytes)
        store_raw<u8, kVectorBytes>(reinterpret_cast<char*>(to) + i,
                                    load_raw<u8, kVectorBytes>(reinterpret_cast<const char*>(from) + i));
#pragma clang loop unroll(full)
    for (int i = kMain; i < kBytes; i += 8)
        store_raw<u8, 8>(reinterpret_cast<char*>(to) + i, load_raw<u8, 8>(reinterpret_cast<const char*>(from) + i));
}

// ---- Quantising, in three passes over a row, so that the divisions for scales fill whole vectors --------------------

/// A row's groups, padded to whole vectors: the padding is computed with, never stored.
template <class Row>
inline constexpr int kPaddedScales = (Row::kScales + kLanes - 1) / kLanes * kLanes;

/// |x| as integers, which order as the floats do, with NaN above infinity: a maximum keeps every fault.
template <int N>
KVJIT_INLINE vi<N> magnitude_bits(vf<N> x) {
    return bits_of<N>(x) & 0x7fffffff;
}

/// In each lane the largest of its group of kLanesOfGroup < N consecutive lanes.
template <int N, int kLanesOfGroup, int kStep = 1>
KVJIT_INLINE vi<N> group_max(vi<N> v) {
    if constexpr (kStep == kLanesOfGroup)
        return v;
    else
        return group_max<N, kLanesOfGroup, 2 * kStep>(max_fast(v, exchange<i32, N, kStep>(v)));
}

/// Groups within one vector: the maximum of each.
template <class Row, class From>
KVJIT_INLINE void narrow_group_maxima(i32* maxima, const From* row) {
    for_each_vector<kHeadDim>([&]<int N>(int d) {
        constexpr int kGroups = N / Row::kQuantGroup;
        const vi<N> largest = group_max<N, Row::kQuantGroup>(magnitude_bits<N>(load<N>(row + d)));
        if constexpr (kGroups == 1)
            maxima[d / Row::kQuantGroup] = largest[0];
        else
            store_raw<i32, kGroups>(maxima + d / Row::kQuantGroup, every<i32, N, kGroups>(largest));
    });
}

/// Groups wider than a vector.
template <class Row, class From>
KVJIT_INLINE void wide_group_maxima(i32* maxima, const From* row) {
    for (int group = 0; group < Row::kScales; ++group) {
        vi<8> largest(0);
        for_each_vector<Row::kQuantGroup>([&]<int N>(int d) {
            const vi<N> bits = magnitude_bits<N>(load<N>(row + group * Row::kQuantGroup + d));
            if constexpr (N == 8)
                largest = max_fast(largest, bits);
            else
                largest = max_fast(largest, max_fast(low_half<i32, N>(bits), high_half<i32, N>(bits)));
        });
        maxima[group] = max_of<8>(largest);
    }
}

/// The scales of a row from its groups' maxima: as float32 (padding too), and the real ones to memory.
template <class Row>
KVJIT_INLINE void store_scales(typename Row::T3* scales, float* as_float, const i32* maxima) {
    constexpr int kTail = Row::kScales % kLanes;
#pragma clang loop unroll(full)
    for (int g = 0; g < kPaddedScales<Row>; g += kLanes) {
        const vf<kLanes> scale = quant_scale<Row>(from_bits<kLanes>(load_raw<i32, kLanes>(maxima + g)));
        store<kLanes>(as_float + g, scale);
        if (kTail == 0 || g + kLanes < kPaddedScales<Row>)
            store<kLanes>(scales + g, scale);
        else
            store_first<kTail, kLanes>(scales + g, scale);
    }
}

/// The codes' bytes of N elements. A code sits in the low bits of quant_code_magic's result, whose other bits end above
/// the byte.
template <int N, class Row>
KVJIT_INLINE vec<i8, N> codes_of(vf<N> x, vf<N> scale) {
    return __builtin_convertvector(bits_of<N>(quant_code_magic<Row>(x, scale)), vec<i8, N>);
}

template <int N>
KVJIT_INLINE void store_codes(i8_t* to, vec<i8, N> codes) {
    store_raw<i8, N>(to, codes);
}

template <int N>
KVJIT_INLINE void store_codes(i4x2_t* to, vec<i8, N> codes) {
    const vec<u16, N / 2> pairs = __builtin_bit_cast(vec<u16, N / 2>, codes);
    store_raw<u8, N / 2>(to, __builtin_convertvector((pairs & 0x0f) | ((pairs >> 4) & 0xf0), vec<u8, N / 2>));
}

template <class Row, class From>
KVJIT_INLINE void quantise_row(typename Row::T2* codes, typename Row::T3* scales, const From* row) {
    constexpr int kPadded = kPaddedScales<Row>;
    i32 maxima[kPadded];
    float as_float[kPadded];
    // Padding: any value whose scale is a number.
    for (int g = Row::kScales; g < kPadded; ++g) maxima[g] = 0;
    if constexpr (Row::kQuantGroup > kLanes)
        wide_group_maxima<Row>(maxima, row);
    else
        narrow_group_maxima<Row>(maxima, row);
    store_scales<Row>(scales, as_float, maxima);
    for_each_vector<kHeadDim>([&]<int N>(int d) {
        store_codes<N>(advance(codes, d), codes_of<N, Row>(load<N>(row + d), group_values<N, Row>(as_float, d)));
    });
}

// ---- Rows to and from the cache ------------------------------------------------------------------------------------

/// A row of T1 to its slot.
template <class Row = CacheRow>
KVJIT_INLINE void encode_row(typename Row::T2* to, typename Row::T3* scales, const T1* from) {
    if constexpr (Row::kQuantised)
        quantise_row<Row>(to, scales, from);
    else if constexpr (kSame<typename Row::T2, T1>)
        move_row(to, from);
    else
        for_each_vector<kHeadDim>([&]<int N>(int d) { store<N>(to + d, load<N>(from + d)); });
}

/// A slot to a row of T1, rounded once.
template <class Row = CacheRow>
KVJIT_INLINE void decode_row(T1* to, const typename Row::T2* from, const typename Row::T3* scales) {
    if constexpr (kSame<T1, typename Row::T2>)
        move_row(to, from);
    else
        for_each_vector<kHeadDim>([&]<int N>(int d) { store<N>(to + d, load_cache<N, Row>(from, scales, d)); });
}

}  // namespace kvjit
