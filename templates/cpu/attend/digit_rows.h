// Digits as products of tiles take them: a row of bytes for each digit of a query or of its weights.
#pragma once

#include "cpu/attend/byte_terms.h"
#include "cpu/machine/bytes.h"

namespace kvjit {

template <int... I>
KVJIT_INLINE vi<16> gather_digits(vi<16> digits, Sequence<int, I...>) {
    return __builtin_shufflevector(digits, digits, (I % 4 * 4 + I / 4)...);
}
/// Calls f(digit, word): word i of it has that digit of numbers 4*i..4*i+3. digits: as deal_digits gives them.
template <class F>
KVJIT_INLINE void for_each_digit(vi<16> digits, F&& f) {
    const vi<16> words = gather_digits(digits, Lanes<16>{});
    static_assert(kDigits == 3);
    f(0, quarter<0>(words));
    f(1, quarter<1>(words));
    f(2, quarter<2>(words));
}

struct QueryDigits {
    alignas(64) i32 words[kRows][kDigits][kHeadDim / 4];

    /// Writes four words of row r, kByteCodes words apart.
    KVJIT_INLINE void write(i64 r, int word, vi<16> digits, vi<16>&) {
        for_each_digit(digits, [&](int digit, vi<4> four) {
            i32* to = words[r][digit] + word;
            if constexpr (kByteCodes == 1) {
                store_vector(to, four);
            } else {
#pragma clang loop unroll(full)
                for (int i = 0; i < 4; ++i) to[i * kByteCodes] = four[i];
            }
        });
    }
    KVJIT_INLINE void end_segment(i64, int, vi<16>) {}
};

struct WeightDigits {
    alignas(64) u8 rows[kScalesPerRow][kRows][kDigits][kWeightKeys];

    /// Writes those of the 16 keys from 16 * set on.
    KVJIT_INLINE void write(i64 set, int group, i64 r, vi<16> digits) {
        for_each_digit(digits, [&](int digit, vi<4> keys) { store_vector(rows[group][r][digit] + 16 * set, keys); });
    }

    /// Sets those of keys before 16 * first_set, and from 16 * end_set on, to 0: tiles take 64 keys together.
    KVJIT_INLINE void clear_others(i64 first_set, i64 end_set) {
        constexpr i64 kSets = kWeightKeys / 16;
        if (first_set == 0 && end_set == kSets) return;
#pragma clang loop unroll(disable)
        for (u8* row = rows[0][0][0]; row < rows[0][0][0] + sizeof(rows); row += kWeightKeys) {
#pragma clang loop unroll(disable)
            for (i64 set = 0; set < kSets; ++set)
                if (set < first_set || set >= end_set) store_vector(row + 16 * set, vi<4>(0));
        }
    }
};

}  // namespace kvjit
