// Elements of tensors: 16-bit floating-point types for storage, and which kvjit_dtype a C++ type is. Part of kvjit.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kvjit/kvjit.h"

namespace kvjit {
namespace detail {

constexpr std::uint32_t kFloatSign = 0x80000000, kFloatInfinity = 0x7f800000, kFloatQuiet = 0x00400000,
                        kFloatOne = 0x00800000;  // one in its exponent

inline std::uint32_t bits_of(float value) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

inline float float_of(std::uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

/// number / 2^shift, rounded to nearest, ties to even. `shift` is 1 to 31; number < 2^31.
inline std::uint32_t shift_rounded(std::uint32_t number, std::uint32_t shift) {
    const std::uint32_t below_half = (std::uint32_t{1} << (shift - 1)) - 1;
    return (number + below_half + (number >> shift & 1)) >> shift;
}

/// Formats of 16 bits, by magnitudes: all bits but the sign. `narrow` takes a float's, `widen` gives a float's.
///
/// Of binary16, 1 + 5 + 10 bits, exponents are less by 112 than a float's. Below 2^-14 it counts 2^-24ths.
struct Binary16 {
    static std::uint32_t narrow(std::uint32_t magnitude) {
        constexpr std::uint32_t kSmallestNormal = 113 * kFloatOne, kBeyond = 143 * kFloatOne;  // 2^-14, 2^16
        if (magnitude > kFloatInfinity) return 0x7e00 | (magnitude >> 13 & 0x3ff);
        if (magnitude >= kBeyond) return 0x7c00;
        if (magnitude >= kSmallestNormal) return shift_rounded(magnitude - 112 * kFloatOne, 13);
        const std::uint32_t shift = 126 - (magnitude >> 23);
        return shift > 24 ? 0 : shift_rounded(magnitude % kFloatOne + kFloatOne, shift);
    }
    static std::uint32_t widen(std::uint32_t magnitude) {
        if (magnitude > 0x7c00) return kFloatInfinity | kFloatQuiet | magnitude << 13;
        if (magnitude == 0x7c00) return kFloatInfinity;
        if (magnitude < 0x0400) return bits_of(static_cast<float>(magnitude) * 0x1p-24F);
        return (magnitude << 13) + 112 * kFloatOne;
    }
};

/// A float's upper 16 bits.
struct Brain16 {
    static std::uint32_t narrow(std::uint32_t magnitude) {
        return magnitude > kFloatInfinity ? (magnitude | kFloatQuiet) >> 16 : shift_rounded(magnitude, 16);
    }
    static std::uint32_t widen(std::uint32_t magnitude) {
        return magnitude << 16 | (magnitude << 16 > kFloatInfinity ? kFloatQuiet : 0);
    }
};

template <class Format>
class Float16 {
public:
    Float16() = default;
    explicit Float16(float value) {
        const std::uint32_t bits = bits_of(value), sign = bits & kFloatSign;
        bits_ = static_cast<std::uint16_t>(sign >> 16 | Format::narrow(bits ^ sign));
    }
    operator float() const {
        const std::uint32_t magnitude = bits_ & 0x7fffU, sign = bits_ ^ magnitude;
        return float_of(sign << 16 | Format::widen(magnitude));
    }
    static Float16 from_bits(std::uint16_t bits) {
        Float16 value;
        value.bits_ = bits;
        return value;
    }
    std::uint16_t bits() const { return bits_; }

private:
    std::uint16_t bits_;
};

}  // namespace detail

/// IEEE 754's binary16, for storage: KVJIT_F16. From float rounded to nearest, ties to even, whatever the thread's
/// rounding mode; what is 65520 or more is infinity; to float exactly. A NaN stays one, with its sign and what fits of
/// its payload, quiet. Trivially copyable; as an element of a std::vector 0 at first. Arithmetic is float's.
using half = detail::Float16<detail::Binary16>;

/// The upper 16 bits of a float, for storage: KVJIT_BF16. Conversions as half's; its largest number is near float's.
using bfloat16 = detail::Float16<detail::Brain16>;

/// The kvjit_dtype whose elements T holds; KVJIT_AUTO: none. For an engine's own type of float16
///     template <>
///     inline constexpr kvjit_dtype kvjit::dtype_of<engine::Half> = KVJIT_F16;
template <class T>
inline constexpr kvjit_dtype dtype_of = KVJIT_AUTO;
template <>
inline constexpr kvjit_dtype dtype_of<float> = KVJIT_F32;
template <>
inline constexpr kvjit_dtype dtype_of<half> = KVJIT_F16;
template <>
inline constexpr kvjit_dtype dtype_of<bfloat16> = KVJIT_BF16;
#if defined(__FLT16_MANT_DIG__) && !defined(__CUDACC__)
template <>
inline constexpr kvjit_dtype dtype_of<_Float16> = KVJIT_F16;
#endif
template <>
inline constexpr kvjit_dtype dtype_of<std::int8_t> = KVJIT_I8;
template <>
inline constexpr kvjit_dtype dtype_of<std::uint8_t> = KVJIT_U8;  // two int4 codes
template <>
inline constexpr kvjit_dtype dtype_of<std::byte> = KVJIT_U8;
template <>
inline constexpr kvjit_dtype dtype_of<std::int32_t> = KVJIT_I32;
template <>
inline constexpr kvjit_dtype dtype_of<std::int64_t> = KVJIT_I64;

}  // namespace kvjit
