#include "ptx/machine/sums.h"

#include <limits>

namespace kvjit::ptx {
namespace {

constexpr i32 kZeroExponent = Multiplicand<kM>::kZeroExponent;
constexpr float kLargest = std::numeric_limits<float>::max();

i32 exponent_of_float(float value) {
    const auto field = static_cast<i32>(std::bit_cast<u32>(value) >> 23 & 0xff);
    return std::max(field, 1) - 127;
}

/// What is too large becomes kLargest.
float toward_zero(double value) {
    const auto nearest = static_cast<float>(value);
    const bool is_beyond = std::fabs(static_cast<double>(nearest)) > std::fabs(value);
    const float rounded = std::bit_cast<float>(std::bit_cast<u32>(nearest) - static_cast<u32>(is_beyond));
    return std::clamp(rounded, -kLargest, kLargest);
}

/// Of whole numbers below 2^31, as those of at most 29 bits are.
double cut(double value) {
    return static_cast<double>(static_cast<i32>(value));
}

/// Adds sums.terms products, from number `first` on, to each element of a row of C. Loops over columns are vectorised.
void add_cut(float (&c)[kN], const Multiplicand<kM>& a, int row, const Multiplicand<kN>& b, int first, Sums sums) {
    i32 largest[kN];
    double total[kN], scale[kN];
    for (int j = 0; j < kN; ++j) largest[j] = c[j] == 0 ? kZeroExponent : exponent_of_float(c[j]);
    for (int k = first; k < first + sums.terms; ++k) {
        for (int j = 0; j < kN; ++j) largest[j] = std::max(largest[j], a.exponents[k][row] + b.exponents[k][j]);
    }
    for (int j = 0; j < kN; ++j) scale[j] = power_of_2(sums.bits - largest[j]);
    for (int j = 0; j < kN; ++j) total[j] = cut(static_cast<double>(c[j]) * scale[j]);
    for (int k = first; k < first + sums.terms; ++k) {
        for (int j = 0; j < kN; ++j) total[j] += cut(a.finite[k][row] * b.finite[k][j] * scale[j]);
    }
    for (int j = 0; j < kN; ++j) c[j] = toward_zero(total[j] * power_of_2(largest[j] - sums.bits));
}

float add_exactly(float c, const Multiplicand<kM>& a, int row, const Multiplicand<kN>& b, int column) {
    auto sum = static_cast<double>(c);
    for (int k = 0; k < kK; ++k) sum += a.exact[k][row] * b.exact[k][column];
    return std::isnan(sum) ? std::bit_cast<float>(0x7fff'ffffU) : static_cast<float>(sum);
}

}  // namespace

void add_products(float (&c)[kN], const Multiplicand<kM>& a, int row, const Multiplicand<kN>& b, Sums sums) {
    float finite[kN];
    for (int j = 0; j < kN; ++j) finite[j] = std::isfinite(c[j]) ? c[j] : 0;
    for (int first = 0; sums.terms != 0 && first < kK; first += sums.terms) add_cut(finite, a, row, b, first, sums);
    for (int j = 0; j < kN; ++j) {
        const bool is_finite =
            a.is_finite[row] && b.is_finite[j] && std::isfinite(c[j]) && std::fabs(finite[j]) < kLargest;
        c[j] = sums.terms != 0 && is_finite ? finite[j] : add_exactly(c[j], a, row, b, j);
    }
}

}  // namespace kvjit::ptx
