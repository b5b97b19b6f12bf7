// float16 and bfloat16, by their definitions: IEEE 754's binary16, and the upper half of binary32.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "ptx/machine/kernel.h"

namespace kvjit::ptx {

/// Of doubles that are not subnormal.
inline double power_of_2(int exponent) {
    return std::bit_cast<double>(static_cast<u64>(exponent + 1023) << 52);
}
inline int exponent_of(double magnitude) {
    return static_cast<int>(std::bit_cast<u64>(magnitude) >> 52) - 1023;
}

/// A format of 16 bits: `kExponentBits` of exponent behind the sign, then the fraction.
template <int kExponentBits>
struct Narrow {
    static constexpr int kFractionBits = 15 - kExponentBits;
    static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
    static constexpr int kLowest = 1 - kBias;  // the exponent of subnormal numbers, too
    static constexpr u32 kInfinity = ((1U << kExponentBits) - 1) << kFractionBits;
    static constexpr u16 kNan = 0x7fff;

    static double widen(u16 bits) { return static_cast<double>(table()[bits]); }

    /// To nearest, ties to even, once from the exact value of `wide`.
    static u16 narrow(double wide) {
        if (std::isnan(wide)) return kNan;
        const u32 sign = std::signbit(wide) ? 0x8000 : 0;
        const double magnitude = std::fabs(wide);
        if (magnitude >= power_of_2(kBias + 1)) return static_cast<u16>(sign | kInfinity);
        const int exponent = std::max(exponent_of(magnitude), kLowest);
        // Whole units of the last digit, rounded by the sum: a double next to 2^52 has no fraction.
        const double units = magnitude * power_of_2(kFractionBits - exponent) + 0x1p52 - 0x1p52;
        // Without the leading digit, which the exponent's field stands for; one unit too many carries into it.
        const auto count = static_cast<u32>(units);
        const u32 field = static_cast<u32>(exponent - kLowest) << kFractionBits;
        return static_cast<u16>(sign | (field + count));
    }

private:
    static double exact(u16 bits) {
        const u32 exponent = (bits & 0x7fffU) >> kFractionBits, fraction = bits & ((1U << kFractionBits) - 1);
        const double sign = (bits & 0x8000U) != 0 ? -1 : 1;
        if (exponent == (1U << kExponentBits) - 1) return fraction != 0 ? std::nan("") : sign * HUGE_VAL;
        const u32 significand = exponent == 0 ? fraction : fraction | (1U << kFractionBits);
        const int scale = (exponent == 0 ? kLowest : static_cast<int>(exponent) - kBias) - kFractionBits;
        return sign * significand * power_of_2(scale);
    }

    /// All numbers of the format, by their bits.
    static const float* table() {
        static const std::vector<float> numbers = [] {
            std::vector<float> made(0x10000);
            for (u32 bits = 0; bits < made.size(); ++bits)
                made[bits] = static_cast<float>(exact(static_cast<u16>(bits)));
            return made;
        }();
        return numbers.data();
    }
};

using Float16 = Narrow<5>;
using BFloat16 = Narrow<8>;

/// a * b + c, rounded once. `Format`'s products are exact in double; their sum with c is rounded to odd, which a second
/// rounding to fewer digits can't be misled by.
template <class Format>
u16 fused_multiply_add(u16 a, u16 b, u16 c) {
    const double product = Format::widen(a) * Format::widen(b), addend = Format::widen(c);
    const double sum = product + addend;
    if (!std::isfinite(sum)) return Format::narrow(sum);
    const double back = sum - product;
    const double error = (product - (sum - back)) + (addend - back);  // exact: TwoSum
    if (error == 0 || (std::bit_cast<u64>(sum) & 1) != 0) return Format::narrow(sum);
    const bool away = (error > 0) == (sum > 0);
    return Format::narrow(std::bit_cast<double>(std::bit_cast<u64>(sum) + (away ? 1U : u64(-1))));
}

}  // namespace kvjit::ptx
