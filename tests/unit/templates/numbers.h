// Element types by their definitions, in plain scalar arithmetic: what the templates' results are compared with.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "programs.h"

namespace kvjit::test {

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// Value of a binary16, by its definition.
inline double half_value(unsigned half) {
    const int exponent = (half >> 10) & 31;
    const int mantissa = half & 1023;
    const double sign = half & 0x8000 ? -1 : 1;
    if (exponent == 31) return mantissa ? std::numeric_limits<double>::quiet_NaN() : sign * kInf;
    if (exponent == 0) return sign * std::ldexp(mantissa, -24);
    return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

/// Binary16 nearest to `value`, by its definition: what is left of the last place is rounded by nearbyint.
inline std::uint16_t nearest_half(float value) {
    const unsigned sign = std::signbit(value) ? 0x8000 : 0;
    if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7e00);
    const double size = std::fabs(static_cast<double>(value));
    if (size >= 65520) return static_cast<std::uint16_t>(sign | 0x7c00);
    const int exponent = size < 0x1p-14 ? -14 : std::ilogb(size);
    const auto units = static_cast<unsigned>(std::nearbyint(std::ldexp(size, 10 - exponent)));
    return static_cast<std::uint16_t>(sign | (static_cast<unsigned>(exponent + 14) * 1024 + units));
}

inline std::int64_t bytes_of(Type type, std::int64_t elements) {
    if (type == Type::kI4) return elements / 2;
    return elements * (type == Type::kF32 ? 4 : type == Type::kF16 ? 2 : 1);
}

/// Element i of a float row.
inline float get(const void* row, Type type, std::int64_t i) {
    if (type == Type::kF32) {
        float value;
        std::memcpy(&value, static_cast<const char*>(row) + 4 * i, 4);
        return value;
    }
    std::uint16_t half;
    std::memcpy(&half, static_cast<const char*>(row) + 2 * i, 2);
    return static_cast<float>(half_value(half));
}

inline void put(void* row, Type type, std::int64_t i, float value) {
    if (type == Type::kF32) {
        std::memcpy(static_cast<char*>(row) + 4 * i, &value, 4);
    } else {
        const std::uint16_t half = nearest_half(value);
        std::memcpy(static_cast<char*>(row) + 2 * i, &half, 2);
    }
}

inline int get_code(const void* row, Type type, std::int64_t i) {
    if (type == Type::kI8) return static_cast<const signed char*>(row)[i];
    const int nibble = (static_cast<const unsigned char*>(row)[i / 2] >> (i % 2 * 4)) & 15;
    return nibble < 8 ? nibble : nibble - 16;
}

inline void put_code(void* row, Type type, std::int64_t i, int code) {
    if (type == Type::kI8) {
        static_cast<signed char*>(row)[i] = static_cast<signed char>(code);
        return;
    }
    unsigned char& byte = static_cast<unsigned char*>(row)[i / 2];
    const int shift = static_cast<int>(i % 2 * 4);
    byte = static_cast<unsigned char>((byte & ~(15 << shift)) | ((code & 15) << shift));
}

}  // namespace kvjit::test
