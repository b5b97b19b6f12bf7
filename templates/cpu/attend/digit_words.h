// Digits as products of vectors take them: words of four, each for all lanes.
#pragma once

#include "cpu/attend/byte_terms.h"
#include "cpu/machine/bytes.h"

namespace kvjit {

struct QueryDigits {
    /// For each row the lowest digits of 4 elements, the middle and the upper ones.
    using Word = i32[kRows][4];
    alignas(64) Word words[kHeadDim / 4];
    i32 begin[kSegments][kRows][2];  // -128 * sums of digits: the lowest's, and the other two's

    /// Writes four words of row r, kByteCodes words apart, and adds their digits to `sums`. digits: as deal_digits
    /// gives them.
    KVJIT_INLINE void write(i64 r, int word, vi<16> digits, vi<16>& sums) {
        sums = add_byte_products(sums, vi<16>(0x01010101), digits);
        store_raw<i32, 4>(words[word][r], quarter<0>(digits));
        store_raw<i32, 4>(words[word + kByteCodes][r], quarter<1>(digits));
        store_raw<i32, 4>(words[word + 2 * kByteCodes][r], quarter<2>(digits));
        store_raw<i32, 4>(words[word + 3 * kByteCodes][r], quarter<3>(digits));
    }

    KVJIT_INLINE void end_segment(i64 r, int segment, vi<16> sums) {
        const vi<4> sum = quarter<0>(sums) + quarter<1>(sums) + quarter<2>(sums) + quarter<3>(sums);
        begin[segment][r][0] = -128 * sum[0];
        begin[segment][r][1] = -128 * (256 * sum[2] + sum[1]);
    }
};

struct WeightDigits {
    /// For 16 keys, a group and a row: for each 4 keys, the lowest digits of the 4, their middle and their upper ones.
    alignas(64) i32 words[kWeightKeys / 16][kScalesPerRow][kRows][4][4];

    /// digits: as deal_digits gives them, of the 16 keys from 16 * set on.
    KVJIT_INLINE void write(i64 set, int group, i64 r, vi<16> digits) { store_vector(words[set][group][r], digits); }
    KVJIT_INLINE void clear_others(i64, i64) {}
};

}  // namespace kvjit
