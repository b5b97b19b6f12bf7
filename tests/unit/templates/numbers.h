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

/// 16 bits: a sign, 15 - fraction_bits bits of exponent, and a fraction.
struct Format16 {
    int fraction_bits;
    int fractions() const { return 1 << fraction_bits; }
    int largest_exponent() const { return (1 << (14 - fraction_bits)) - 1; }
    unsigned infinity() const { return 0x7fffU >> fraction_bits << fraction_bits; }
};
inline constexpr Format16 kHalf = {10}, kBfloat16 = {7};

/// A number of the format, by its definition.
inline double value_of(Format16 format, unsigned bits) {
    const int biased = static_cast<int>(bits & 0x7fff) / format.fractions();
    const int fraction = static_cast<int>(bits) % format.fractions();
    const double sign = bits & 0x8000 ? -1 : 1;
    if ((bits & 0x7fff) >= format.infinity()) return fraction ? std::numeric_limits<double>::quiet_NaN() : sign * kInf;
    const int units = biased == 0 ? fraction : format.fractions() + fraction;
    return sign * std::ldexp(units, std::max(biased, 1) - format.largest_exponent() - format.fraction_bits);
}

/// The format's number nearest to `value`, by its definition: what is left of the last place is rounded by nearbyint.
inline std::uint16_t nearest(Format16 format, float value) {
    const unsigned sign = std::signbit(value) ? 0x8000 : 0;
    if (std::isnan(value)) return static_cast<std::uint16_t>(sign | format.infinity() | format.fractions() / 2);
    const double size = std::fabs(static_cast<double>(value));
    const int smallest = 1 - format.largest_exponent();
    const int exponent = size < std::ldexp(1, smallest) ? smallest : std::ilogb(size);
    if (exponent > format.largest_exponent()) return static_cast<std::uint16_t>(sign | format.infinity());
    const auto units = static_cast<unsigned>(std::nearbyint(std::ldexp(size, format.fraction_bits - exponent)));
    const auto before = static_cast<unsigned>(exponent - smallest) << format.fraction_bits;
    return static_cast<std::uint16_t>(sign | (before + units));
}

inline double half_value(unsigned bits) {
    return value_of(kHalf, bits);
}
inline std::uint16_t nearest_half(float value) {
    return nearest(kHalf, value);
}

inline std::int64_t bytes_of(Type type, std::int64_t elements) {
    if (type == Type::kI4) return elements / 2;
    return elements * (type == Type::kF32 ? 4 : type == Type::kI8 ? 1 : 2);
}

/// Element i of a float row.
inline float get(const void* row, Type type, std::int64_t i) {
    if (type == Type::kF32) {
        float value;
        std::memcpy(&value, static_cast<const char*>(row) + 4 * i, 4);
        return value;
    }
    std::uint16_t bits;
    std::memcpy(&bits, static_cast<const char*>(row) + 2 * i, 2);
    return static_cast<float>(value_of(type == Type::kF16 ? kHalf : kBfloat16, bits));
}

inline void put(void* row, Type type, std::int64_t i, float value) {
    if (type == Type::kF32) {
        std::memcpy(static_cast<char*>(row) + 4 * i, &value, 4);
    } else {
        const std::uint16_t bits = nearest(type == Type::kF16 ? kHalf : kBfloat16, value);
        std::memcpy(static_cast<char*>(row) + 2 * i, &bits, 2);
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
