// Queries in fixed point, for products of bytes. A segment of neighbouring elements, which share a scale, has a unit of
// its own, a power of two, so that each element is an integer of 24 bits, with its sign: the nearest one, and for
// float16 and bfloat16 all but the smallest exactly. Three digits of base 256, each in -128..127, are its bytes.
#pragma once

#include "cpu/attend/decode_scores.h"
#include "cpu/attend/lanes.h"

namespace kvjit {

struct DigitTile {
    QueryDigits digits;
    float unit[kSegments][kRows][2];  // of the lowest digit and of the middle one
    const T1* floats[kRows];          // a query that isn't finite, else null
};

KVJIT_INLINE u32 largest_of(vec<u32, 16> numbers) {
    const vec<u32, 2> two = fold_max<u32, 16, 2>(numbers);
    return two[0] > two[1] ? two[0] : two[1];
}

/// The bits of the largest of the segment's numbers without their signs.
KVJIT_INLINE u32 largest_of_segment(const T1* from) {
    vec<u32, 16> largest(0u);
#pragma clang loop unroll(disable)
    for (int d = 0; d < kSegmentElements; d += 16)
        largest = max_fast(__builtin_bit_cast(vec<u32, 16>, bits_of<16>(load<16>(from + d)) & 0x7fffffff), largest);
    return largest_of(largest);
}

/// 2^n for n in -126..127.
KVJIT_INLINE float power_of_2(i32 n) {
    return __builtin_bit_cast(float, (n + 127) << 23);
}

/// n with 2^n <= x < 2^(n+1) for the number with these bits, least if it is smaller than 2^least.
KVJIT_INLINE i32 exponent_of(u32 bits, i32 least) {
    const i32 n = static_cast<i32>(bits >> 23) - 127;
    return n < least ? least : n;
}

/// Writes the digits of 16 numbers as 4 words, kByteCodes words apart.
KVJIT_INLINE void write_digits(QueryDigits& to, i64 r, int word, vf<16> numbers, vi<16>& sums) {
    // Digits 0..255 of a number and 0x808080 are 128 more than its own.
    const vi<16> shifted = (round_to_integers(numbers) + 0x808080) ^ 0x808080;
    to.write(r, word, deal_digits(shifted), sums);
}

/// Writes the digits of 16 * kByteCodes elements, those of 16 bytes of codes.
KVJIT_INLINE void write_elements(QueryDigits& to, i64 r, int word, const T1* from, float factor, vi<16>& sums) {
    if constexpr (kByteCodes == 1) {
        write_digits(to, r, word, load<16>(from) * factor, sums);
    } else {
        const vf<32> numbers = load<32>(from) * factor;
        write_digits(to, r, word, every<float, 32, 16>(numbers), sums);
        write_digits(to, r, word + 1, every<float, 32, 16>(exchange<float, 32, 1>(numbers)), sums);
    }
}

/// Writes a segment of row r's query. Returns whether it is finite.
KVJIT_INLINE bool load_segment(DigitTile& tile, i64 r, int segment, const T1* from) {
    constexpr int kTogether = 16 * kByteCodes;
    const u32 largest = largest_of_segment(from);
    // The largest number becomes less than 2^23 - 2^16, so that its upper digit is at most 127: one that would be
    // larger counts as of the next exponent.
    const i32 shift = 22 - exponent_of(largest + 0x20000, -100);
    const int first = segment * kSegmentElements;
    vi<16> sums(0);
#pragma clang loop unroll(disable)
    for (int d = 0; d < kSegmentElements; d += kTogether)
        write_elements(tile.digits, r, (first + d) / 4, from + d, power_of_2(shift), sums);
    tile.digits.end_segment(r, segment, sums);
    tile.unit[segment][r][0] = power_of_2(-shift) / kCodeFactor;
    tile.unit[segment][r][1] = power_of_2(-shift) / kCodeFactor * 256;
    return largest < 0x7f800000;
}

KVJIT_INLINE void load_digits(DigitTile& tile, i64 r, const T1* from) {
    bool finite = true;
#pragma clang loop unroll(disable)
    for (int segment = 0; segment < kSegments; ++segment)
        finite &= load_segment(tile, r, segment, from + segment * kSegmentElements);
    tile.floats[r] = finite ? nullptr : from;
}

}  // namespace kvjit
