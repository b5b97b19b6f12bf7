// Products of bytes, whose sums are exact, and what brings bytes of the cache to them.
#pragma once

#include "cpu/machine/simd.h"

namespace kvjit {

/// sum + a0*b0 + a1*b1 + a2*b2 + a3*b3 for the 4 bytes of each lane, unsigned in a and signed in b.
KVJIT_INLINE vi<16> add_byte_products(vi<16> sum, vi<16> a, vi<16> b) {
#ifdef __AVX512VNNI__
    return __builtin_ia32_vpdpbusd512(sum, a, b);
#else
    const auto unsigned_bytes = __builtin_bit_cast(vec<u8, 64>, a);
    const auto signed_bytes = __builtin_bit_cast(vec<i8, 64>, b);
#pragma clang loop unroll(disable)
    for (int i = 0; i < 64; ++i) sum[i / 4] += unsigned_bytes[i] * signed_bytes[i];
    return sum;
#endif
}

/// The nearest integers, of ties the even one. NaN and what has no 32 bits give any integer.
KVJIT_INLINE vi<16> round_to_integers(vf<16> v) {
#ifdef __AVX512F__
    return __builtin_ia32_cvtps2dq512_mask(v, vi<16>(0), static_cast<u16>(-1), 4);
#else
    vi<16> rounded;
#pragma clang loop unroll(disable)
    for (int i = 0; i < 16; ++i) rounded[i] = static_cast<i32>(__builtin_rintf(v[i]));
    return rounded;
#endif
}

template <int N, int... I>
KVJIT_INLINE vi<N> count_from(i32 first, Sequence<int, I...>) {
    return vi<N>{(first + I)...};
}
/// first, first + 1, ...
template <int N>
KVJIT_INLINE vi<N> integers_from(i32 first) {
    return count_from<N>(first, Lanes<N>{});
}

template <int... I>
KVJIT_INLINE vi<16> deal_each_4(vi<16> numbers, Sequence<int, I...>) {
    const auto bytes = __builtin_bit_cast(vec<u8, 64>, numbers);
    return __builtin_bit_cast(vi<16>, __builtin_shufflevector(bytes, bytes, (I / 16 * 16 + I % 4 * 4 + I % 16 / 4)...));
}
/// Of each 4 numbers: their lowest bytes, in the first lane, then their second ones, and so on.
KVJIT_INLINE vi<16> deal_digits(vi<16> numbers) {
    return deal_each_4(numbers, Lanes<64>{});
}

template <int kPart, int... I>
KVJIT_INLINE vi<4> lanes_from(vi<16> v, Sequence<int, I...>) {
    return __builtin_shufflevector(v, v, (4 * kPart + I)...);
}
/// Lanes 4*kPart..4*kPart+3.
template <int kPart>
KVJIT_INLINE vi<4> quarter(vi<16> v) {
    return lanes_from<kPart>(v, Lanes<4>{});
}

// ---- Words of rows as columns ---------------------------------------------------------------------------------------

/// A column: the words at one place of 16 rows.
template <class Word>
using Column = vec<Word, 16>;

template <class Word>
KVJIT_INLINE Column<Word> load_column(const char* const* rows, i64 byte) {
    Column<Word> column;
#pragma clang loop unroll(full)
    for (int k = 0; k < 16; ++k)
        column[k] = static_cast<const Unaligned<Word>*>(static_cast<const void*>(rows[k] + byte))->value;
    return column;
}

// Within each block of 4 lanes, the lower (kPart 0) or upper (2) lanes of a and b: single ones in turn, or pairs.
template <int kPart, int... I>
KVJIT_INLINE vi<16> zip_lanes(vi<16> a, vi<16> b, Sequence<int, I...>) {
    return __builtin_shufflevector(a, b, (I / 4 * 4 + I % 4 / 2 + I % 2 * 16 + kPart)...);
}
template <int kPart, int... I>
KVJIT_INLINE vi<16> zip_pairs(vi<16> a, vi<16> b, Sequence<int, I...>) {
    return __builtin_shufflevector(a, b, (I / 4 * 4 + I % 2 + I % 4 / 2 * 16 + kPart)...);
}
/// The even (kPart 0) or odd (1) blocks of 4 lanes, those of a and then those of b.
template <int kPart, int... I>
KVJIT_INLINE vi<16> take_blocks(vi<16> a, vi<16> b, Sequence<int, I...>) {
    return __builtin_shufflevector(a, b, (I / 8 * 16 + I / 4 % 2 * 8 + I % 4 + kPart * 4)...);
}

/// 8 neighbouring columns of 4 bytes, from `byte` on.
KVJIT_INLINE void load_8_columns(vi<16> (&columns)[8], const char* const* rows, i64 byte) {
    const Lanes<16> lanes{};
    vi<16> mixed[8];
#pragma clang loop unroll(full)
    for (int half = 0; half < 2; ++half) {
        vi<16> pair[4];  // of rows k and k+4
#pragma clang loop unroll(full)
        for (int i = 0; i < 4; ++i) {
            const char* const* row = rows + 8 * half + i;
            pair[i] = join<i32, 8>(load_raw<i32, 8>(row[0] + byte), load_raw<i32, 8>(row[4] + byte));
        }
        const vi<16> low01 = zip_lanes<0>(pair[0], pair[1], lanes), low23 = zip_lanes<0>(pair[2], pair[3], lanes);
        const vi<16> high01 = zip_lanes<2>(pair[0], pair[1], lanes), high23 = zip_lanes<2>(pair[2], pair[3], lanes);
        mixed[4 * half] = zip_pairs<0>(low01, low23, lanes);
        mixed[4 * half + 1] = zip_pairs<2>(low01, low23, lanes);
        mixed[4 * half + 2] = zip_pairs<0>(high01, high23, lanes);
        mixed[4 * half + 3] = zip_pairs<2>(high01, high23, lanes);
    }
#pragma clang loop unroll(full)
    for (int i = 0; i < 4; ++i) {
        columns[i] = take_blocks<0>(mixed[i], mixed[4 + i], lanes);
        columns[4 + i] = take_blocks<1>(mixed[i], mixed[4 + i], lanes);
    }
}

// ---- Bytes of 4 rows together ---------------------------------------------------------------------------------------

template <int kFirst, int kStride, class V, int... I>
KVJIT_INLINE vi<16> deal_bytes(V a, V b, Sequence<int, I...>) {
    return __builtin_bit_cast(vi<16>, __builtin_shufflevector(a, b, (I % 4 * kStride + I / 4 + kFirst)...));
}

/// Lane i has byte i of each of the 4 rows.
KVJIT_INLINE vi<16> zip_16_bytes(const char* const* rows) {
    const auto low = join<u8, 16>(load_raw<u8, 16>(rows[0]), load_raw<u8, 16>(rows[1]));
    const auto high = join<u8, 16>(load_raw<u8, 16>(rows[2]), load_raw<u8, 16>(rows[3]));
    const auto all = join<u8, 32>(low, high);
    return deal_bytes<0, 16>(all, all, Lanes<64>{});
}

/// The same for bytes 0..15 and 16..31.
KVJIT_INLINE void zip_32_bytes(vi<16> (&zipped)[2], const char* const* rows) {
    const auto low = join<u8, 32>(load_raw<u8, 32>(rows[0]), load_raw<u8, 32>(rows[1]));
    const auto high = join<u8, 32>(load_raw<u8, 32>(rows[2]), load_raw<u8, 32>(rows[3]));
    zipped[0] = deal_bytes<0, 32>(low, high, Lanes<64>{});
    zipped[1] = deal_bytes<16, 32>(low, high, Lanes<64>{});
}

// Of each 16 bytes the first 8 (kPart 0) or the last (1) of a and b, in units of kUnit bytes in turn.
template <int kUnit, int kPart, int N, int... I>
KVJIT_INLINE vec<u8, N> zip_units(vec<u8, N> a, vec<u8, N> b, Sequence<int, I...>) {
    return __builtin_shufflevector(
        a, b, (I / 16 * 16 + kPart * 8 + I % 16 / (2 * kUnit) * kUnit + I % kUnit + I / kUnit % 2 * N)...);
}
/// The first (kPart 0) and third 16 bytes of ab and of cd, or the second (1) and fourth.
template <int kPart, int... I>
KVJIT_INLINE vi<16> every_other_part(vec<u8, 64> ab, vec<u8, 64> cd, Sequence<int, I...>) {
    return __builtin_bit_cast(vi<16>, __builtin_shufflevector(ab, cd, (I / 16 * 32 + I % 16 + kPart * 16)...));
}
/// parts[i]: the i-th 16 bytes of v[0], v[1], v[2] and v[3].
template <int N>
KVJIT_INLINE void join_parts(vi<16>* parts, const vec<u8, N> (&v)[4]) {
    if constexpr (N == 64) {
        const vec<u8, 32> low[] = {low_half<u8, 64>(v[0]), low_half<u8, 64>(v[1]), low_half<u8, 64>(v[2]),
                                   low_half<u8, 64>(v[3])};
        const vec<u8, 32> high[] = {high_half<u8, 64>(v[0]), high_half<u8, 64>(v[1]), high_half<u8, 64>(v[2]),
                                    high_half<u8, 64>(v[3])};
        join_parts<32>(parts, low);
        join_parts<32>(parts + 2, high);
    } else {
        const auto ab = join<u8, 32>(v[0], v[1]), cd = join<u8, 32>(v[2], v[3]);
        parts[0] = every_other_part<0>(ab, cd, Lanes<64>{});
        parts[1] = every_other_part<1>(ab, cd, Lanes<64>{});
    }
}

/// Lane i of zipped[p] has byte 16p+i of each of the 4 rows, counted from `byte` on. By shuffles within 16 bytes and of
/// 16 bytes: where results are stored, a compiler makes more of zip_32_bytes' ones.
template <int N>
KVJIT_INLINE void zip_rows(vi<16> (&zipped)[N / 16], const char* const (&rows)[4], i64 byte) {
    const Lanes<N> lanes{};
    const auto a = load_raw<u8, N>(rows[0] + byte), b = load_raw<u8, N>(rows[1] + byte);
    const auto c = load_raw<u8, N>(rows[2] + byte), d = load_raw<u8, N>(rows[3] + byte);
    const auto ab0 = zip_units<1, 0, N>(a, b, lanes), ab1 = zip_units<1, 1, N>(a, b, lanes);
    const auto cd0 = zip_units<1, 0, N>(c, d, lanes), cd1 = zip_units<1, 1, N>(c, d, lanes);
    const vec<u8, N> fours[] = {zip_units<2, 0, N>(ab0, cd0, lanes), zip_units<2, 1, N>(ab0, cd0, lanes),
                                zip_units<2, 0, N>(ab1, cd1, lanes), zip_units<2, 1, N>(ab1, cd1, lanes)};
    join_parts<N>(zipped, fours);
}

}  // namespace kvjit
