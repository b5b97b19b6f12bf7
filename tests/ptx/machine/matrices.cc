#include "ptx/machine/matrices.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ptx/machine/half.h"

namespace kvjit::ptx {
namespace {

constexpr int kM = 16, kN = 8, kK = 16;

/// The exponent of a number's leading digit; of subnormal numbers their format's lowest.
i32 exponent_of_float(float value) {
    const auto field = static_cast<i32>(std::bit_cast<u32>(value) >> 23 & 0xff);
    return std::max(field, 1) - 127;
}
template <class Format>
i32 exponent_of_narrow(u16 bits) {
    const i32 field = (bits & 0x7fff) >> Format::kFractionBits;
    return field == 0 ? Format::kLowest : field - Format::kBias;
}

constexpr i32 kZeroExponent = -300;  // below those of all products

/// Numbers of A or B: the first index is that over which products are added.
template <int kCount>
struct Operand {
    double exact[kK][kCount];
    double finite[kK][kCount];  // 0 for what is not
    i32 exponents[kK][kCount];
    bool is_finite[kCount];  // all numbers of the row of A, or of the column of B

    Operand() { std::ranges::fill(is_finite, true); }

    template <class Format>
    void set(int k, int i, u16 bits) {
        const double value = Format::widen(bits);
        const bool counts = std::isfinite(value);
        exact[k][i] = value;
        finite[k][i] = counts ? value : 0;
        exponents[k][i] = value == 0 || !counts ? kZeroExponent : exponent_of_narrow<Format>(bits);
        is_finite[i] = is_finite[i] && counts;
    }
};
struct Operands {
    Operand<kM> a;
    Operand<kN> b;
};

constexpr float kLargest = std::numeric_limits<float>::max();

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
void add_cut(float (&c)[kN], const Operands& of, int row, int first, Sums sums) {
    i32 largest[kN];
    double total[kN], scale[kN];
    for (int j = 0; j < kN; ++j) largest[j] = c[j] == 0 ? kZeroExponent : exponent_of_float(c[j]);
    for (int k = first; k < first + sums.terms; ++k) {
        for (int j = 0; j < kN; ++j) largest[j] = std::max(largest[j], of.a.exponents[k][row] + of.b.exponents[k][j]);
    }
    for (int j = 0; j < kN; ++j) scale[j] = power_of_2(sums.bits - largest[j]);
    for (int j = 0; j < kN; ++j) total[j] = cut(static_cast<double>(c[j]) * scale[j]);
    for (int k = first; k < first + sums.terms; ++k) {
        for (int j = 0; j < kN; ++j) total[j] += cut(of.a.finite[k][row] * of.b.finite[k][j] * scale[j]);
    }
    for (int j = 0; j < kN; ++j) c[j] = toward_zero(total[j] * power_of_2(largest[j] - sums.bits));
}

float add_exactly(float c, const Operands& of, int row, int column) {
    auto sum = static_cast<double>(c);
    for (int k = 0; k < kK; ++k) sum += of.a.exact[k][row] * of.b.exact[k][column];
    return std::isnan(sum) ? std::bit_cast<float>(0x7fff'ffffU) : static_cast<float>(sum);
}

/// Whatever is not finite, or overflows, affects its own element alone.
void add_products(float (&c)[kN], const Operands& of, int row, Sums sums) {
    float finite[kN];
    for (int j = 0; j < kN; ++j) finite[j] = std::isfinite(c[j]) ? c[j] : 0;
    for (int first = 0; sums.terms != 0 && first < kK; first += sums.terms) add_cut(finite, of, row, first, sums);
    for (int j = 0; j < kN; ++j) {
        const bool is_finite =
            of.a.is_finite[row] && of.b.is_finite[j] && std::isfinite(c[j]) && std::fabs(finite[j]) < kLargest;
        c[j] = sums.terms != 0 && is_finite ? finite[j] : add_exactly(c[j], of, row, j);
    }
}

void check_whole_warp(const Warp& warp) {
    warp.check_together();
    if (warp.mask() != kAllLanes) throw Fault(FaultKind::kApart, "it takes all 32 lanes of a warp");
}

template <class Format>
void multiply(Warp& warp, const Instruction& in) {
    check_whole_warp(warp);
    Operands of;
    float c[kM][kN];
    const auto half = [&](int source, int lane, int upper) {
        const u32 bits = warp.lanes<u32>(in.source(source))[lane];
        return static_cast<u16>(upper == 1 ? bits >> 16 : bits);
    };
    const auto place_of_sum = [&](int lane, int i) -> float& {
        return c[lane / 4 + (i >= 2 ? 8 : 0)][lane % 4 * 2 + i % 2];
    };
    for (int l = 0; l < kLanes; ++l) {
        const int group = l / 4, pair = l % 4 * 2;
        for (int i = 0; i < 8; ++i) {  // a register holds elements i and i + 1
            const int row = group + (i / 2 % 2 == 1 ? 8 : 0), k = pair + i % 2 + (i >= 4 ? 8 : 0);
            of.a.set<Format>(k, row, half(i / 2, l, i % 2));
        }
        for (int i = 0; i < 4; ++i) {
            const int k = pair + i % 2 + (i >= 2 ? 8 : 0);
            of.b.set<Format>(k, group, half(4 + i / 2, l, i % 2));
            place_of_sum(l, i) = warp.lanes<float>(in.source(6 + i))[l];
        }
    }
    for (int row = 0; row < kM; ++row) add_products(c[row], of, row, warp.options().sums);
    for (int i = 0; i < 4; ++i) {
        float results[kLanes];
        for (int l = 0; l < kLanes; ++l) results[l] = place_of_sum(l, i);
        warp.put(in.destination(i), results);
    }
}

/// Lane l has the address of row l % 8 of matrix l / 8.
void load_four_matrices(Warp& warp, const Instruction& in, bool is_transposed) {
    check_whole_warp(warp);
    u16 elements[4][8][8];
    const u32* base = warp.lanes<u32>(in.source(0));
    for (int l = 0; l < kLanes; ++l) {
        const u64 address = base[l] + static_cast<u64>(i64{in.offsets[0]});
        if (address % 16 != 0) throw Fault(FaultKind::kMisaligned, "a row's address is no multiple of 16", l);
        warp.block().shared.load(address, elements[l / 8][l % 8], 16, warp.shared_access(l));
    }
    for (int matrix = 0; matrix < 4; ++matrix) {
        u32 results[kLanes];
        for (int l = 0; l < kLanes; ++l) {
            const int along = l / 4, pair = l % 4 * 2;
            const u16(&from)[8][8] = elements[matrix];
            const u32 low = is_transposed ? from[pair][along] : from[along][pair];
            const u32 high = is_transposed ? from[pair + 1][along] : from[along][pair + 1];
            results[l] = low | high << 16;
        }
        warp.put(in.destination(matrix), results);
    }
}

}  // namespace

void load_matrices(Warp& warp, const Instruction& in) {
    load_four_matrices(warp, in, false);
}
void load_matrices_transposed(Warp& warp, const Instruction& in) {
    load_four_matrices(warp, in, true);
}

void multiply_float16(Warp& warp, const Instruction& in) {
    multiply<Float16>(warp, in);
}
void multiply_bfloat16(Warp& warp, const Instruction& in) {
    multiply<BFloat16>(warp, in);
}

float sum_of_products(const u16 (&a)[16], const u16 (&b)[16], float c, Sums sums) {
    Operands of;
    float row[kN] = {c};
    for (int k = 0; k < kK; ++k) {
        for (int i = 0; i < kM; ++i) of.a.set<Float16>(k, i, i == 0 ? a[k] : u16{0});
        for (int j = 0; j < kN; ++j) of.b.set<Float16>(k, j, j == 0 ? b[k] : u16{0});
    }
    add_products(row, of, 0, sums);
    return row[0];
}

}  // namespace kvjit::ptx
