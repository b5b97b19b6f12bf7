// float16 as bits, for data that the demo makes and checks. Subnormals become zero: none of its data is so small.
#pragma once

#include <cstdint>
#include <cstring>

namespace demo {

using Half = std::uint16_t;

inline float to_float(Half half) {
    const std::uint32_t sign = (half & 0x8000u) << 16;
    const std::uint32_t magnitude = half & 0x7fffu;
    const std::uint32_t bits = sign | (magnitude < 0x0400u ? 0 : (magnitude << 13) + 0x38000000u);
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

/// Precondition: |value| < 65504.
inline Half to_half(float value) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    const std::uint32_t sign = bits >> 16 & 0x8000u;
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude < 0x38800000u) return static_cast<Half>(sign);
    const std::uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1);
    return static_cast<Half>(sign | ((rounded - 0x38000000u) >> 13));
}

}  // namespace demo
