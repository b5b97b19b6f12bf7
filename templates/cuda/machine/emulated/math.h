// Arithmetic that a GPU has as instructions, on the CPU, without calls or tables, and on CPUs without FMA.
#pragma once

#include "common/types.h"
#include "cuda/machine/emulated/half.h"

namespace kvjit::emulation {

/// a * b + c in double, rounded to odd: the last bit is 1 whenever rounding lost something, so that rounding once more,
/// to float or less, gives what rounding the exact value would. The product is exact.
inline double sum_to_odd(float a, float b, float c) {
    const double product = static_cast<double>(a) * b;
    const double sum = product + c;
    const double rest = sum - product;
    const double lost = (product - (sum - rest)) + (c - rest);
    i64 bits = __builtin_bit_cast(i64, sum);
    if (lost != 0 && lost == lost && (bits & 1) == 0) bits += (lost > 0) == (sum > 0) ? 1 : -1;
    return __builtin_bit_cast(double, bits);
}

/// A double as float, rounded to odd: for a value that becomes a half in the end.
KVJIT_INLINE float to_float_odd(double value) {
    constexpr i64 kDropped = (i64{1} << 29) - 1;
    i64 bits = __builtin_bit_cast(i64, value);
    if (bits & kDropped) bits |= kDropped + 1;
    return static_cast<float>(__builtin_bit_cast(double, bits & ~kDropped));
}

/// value * 2^n for n in -252..252, rounded once. Two factors keep each in the exponent's range.
KVJIT_INLINE float scale_by_power(float value, i32 n) {
    const i32 half = n >> 1;
    return value * __builtin_bit_cast(float, (half + 127) << 23) * __builtin_bit_cast(float, (n - half + 127) << 23);
}

/// 2^x to 2 ulp; a subnormal result is 0. 2^-inf == 0, 2^inf == inf, NaN stays.
inline float power_of_two(float x) {
    if (x < -126.0f) return 0.0f;
    x = x > 129.0f ? 129.0f : x;  // NaN passes
    const float shifted = x + kRoundMagic;
    const float r = (x - (shifted - kRoundMagic)) * 0x1.62e430p-1f;  // ln(2)
    float p = 1.0f / 5040;
    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    return scale_by_power(p, __builtin_bit_cast(i32, shifted) - kRoundMagicBits);
}

/// log2(x) to 1 ulp; -inf at 0, NaN for negative x.
inline float logarithm_of_two(float x) {
    if (!(x > 0.0f) || x == kInfinity) return x == 0.0f ? -kInfinity : x > 0.0f ? x : kNan;
    const LogParts parts = log_parts(x);
    return static_cast<float>(parts.exponent + parts.rest * 0x1.71547652b82fep+0);
}

/// The larger of two; NaN if either is. -0 is less than +0.
KVJIT_INLINE float larger_of(float a, float b) {
    if (a != a || b != b) return kNan;
    if (a == b) return __builtin_bit_cast(i32, a) < 0 ? b : a;
    return a > b ? a : b;
}

inline u32 select_bytes(u32 a, u32 b, u32 selector) {
    const u64 bytes = static_cast<u64>(b) << 32 | a;
    u32 result = 0;
    for (i32 i = 0; i < 4; ++i) {
        const u32 byte = selector >> (4 * i) & 7;
        result |= static_cast<u32>(bytes >> (8 * byte) & 0xff) << (8 * i);
    }
    return result;
}

}  // namespace kvjit::emulation
