// Sums of products as tensor cores add them: of a 16x16 matrix A and a 16x8 matrix B, by rows of A.
#pragma once

#include <algorithm>
#include <cmath>

#include "ptx/machine/half.h"
#include "ptx/machine/options.h"

namespace kvjit::ptx {

inline constexpr int kM = 16, kN = 8, kK = 16;

/// Numbers of A or B: the first index is that over which products are added.
template <int kCount>
struct Multiplicand {
    static constexpr i32 kZeroExponent = -300;  // below those of all products

    double exact[kK][kCount];
    double finite[kK][kCount];  // 0 for what is not
    i32 exponents[kK][kCount];
    bool is_finite[kCount];  // all numbers of the row of A, or of the column of B

    Multiplicand() { std::ranges::fill(is_finite, true); }

    template <class Format>
    void set(int k, int i, u16 bits) {
        const double value = Format::widen(bits);
        const bool counts = std::isfinite(value);
        exact[k][i] = value;
        finite[k][i] = counts ? value : 0;
        exponents[k][i] = value == 0 || !counts ? kZeroExponent : exponent_of<Format>(bits);
        is_finite[i] = is_finite[i] && counts;
    }

private:
    /// The exponent of a number's leading digit; of subnormal numbers their format's lowest.
    template <class Format>
    static i32 exponent_of(u16 bits) {
        const i32 field = (bits & 0x7fff) >> Format::kFractionBits;
        return field == 0 ? Format::kLowest : field - Format::kBias;
    }
};

/// c + the products of a row of A and the columns of B. Whatever is not finite, or overflows, affects its own element
/// alone.
void add_products(float (&c)[kN], const Multiplicand<kM>& a, int row, const Multiplicand<kN>& b, Sums sums);

/// Where a lane's registers have their part of C or D: d0 to d3 of ISA 9.7.14.5.8 and 9.7.15.5.1.1.1.
inline float& sum_of_lane(float (&c)[kM][kN], int lane, int i) {
    return c[lane / 4 + (i >= 2 ? 8 : 0)][lane % 4 * 2 + i % 2];
}

}  // namespace kvjit::ptx
