// Storage types of tensors, and the integer types that templates use: they include no system header.
#pragma once

#include "common/abi.h"

/// Templates are built from small functions; none of them may cost a call, or pass a vector through memory.
#ifdef __CUDACC_RTC__
#define KVJIT_INLINE __forceinline__
#else
#define KVJIT_INLINE [[gnu::always_inline]] inline
#endif

/// A long part of a program, or one that stands in several places, stays a function of its own: compile time grows
/// faster than a function's length.
#define KVJIT_NOINLINE [[gnu::noinline, maybe_unused]] static

/// What several cold places share: a function of its own in kernels for CPUs, where copies would only be more to
/// compile. In kernels for GPUs a call would take registers from all of the kernel; the library, which calls the same
/// functions, is compiled ahead.
#if defined(__CUDACC_RTC__) || __STDC_HOSTED__
#define KVJIT_COLD KVJIT_INLINE
#else
#define KVJIT_COLD KVJIT_NOINLINE
#endif

namespace kvjit {

// Defined by keywords, since NVRTC has neither <stdint.h> nor the compilers' __INT8_TYPE__.
using i8 = signed char;
using u8 = unsigned char;
using i16 = short;
using u16 = unsigned short;
using i32 = int;
using u32 = unsigned int;
using abi::i64;
using u64 = unsigned long;

/// IEEE binary16, as stored. float is its own storage type.
struct f16_t {
    u16 bits;
};

/// bfloat16, as stored: the upper half of a float's bits.
struct bf16_t {
    u16 bits;
};

/// An int8 quantisation code, or an int8 element that is moved as it is.
struct i8_t {
    i8 code;
};

/// Two int4 codes in two's complement: element 2i in the low nibble of byte i.
struct i4x2_t {
    u8 codes;
};

template <class A, class B>
inline constexpr bool kSame = false;
template <class A>
inline constexpr bool kSame<A, A> = true;

/// Properties of an element type; generator/element_type.h has the host's. Conversions are overloads for each type, in
/// cpu/ and cuda/: load, store, load_one, store_pair, element ...
struct Element {
    int bits;
    float largest;  // the largest finite value; 0 for quantisation codes, whose arithmetic is float32's
    u32 quiet_nan;  // bits of a NaN; 0 for quantisation codes
};
/// Functions, since NVRTC keeps constants of a struct type in memory. A type without a specialisation doesn't compile.
template <class T>
constexpr Element element_of() = delete;
template <>
constexpr Element element_of<float>() {
    return {32, 3.402823466e+38f, 0x7fc00000};
}
template <>
constexpr Element element_of<f16_t>() {
    return {16, 65504.0f, 0x7e00};
}
template <>
constexpr Element element_of<bf16_t>() {
    return {16, 3.389531390e+38f, 0x7fc0};
}
template <>
constexpr Element element_of<i8_t>() {
    return {8, 0, 0};
}
template <>
constexpr Element element_of<i4x2_t>() {
    return {4, 0, 0};
}

/// Bytes of `elements` consecutive elements; an int4 element is half a byte.
template <class T>
constexpr i64 bytes_of(i64 elements) {
    constexpr int kBits = element_of<T>().bits;
    if constexpr (kBits < 8)
        return elements / (8 / kBits);
    else
        return elements * (kBits / 8);
}

inline constexpr float kInfinity = __builtin_bit_cast(float, 0x7f800000);
inline constexpr float kNan = __builtin_bit_cast(float, element_of<float>().quiet_nan);

/// 1.5 * 2^23. x + kRoundMagic has ulp 1 for |x| <= 2^22, so the addition rounds x to an integer, ties to even. That
/// integer is the sum's bits minus kRoundMagicBits, or, as a float, the sum minus kRoundMagic.
inline constexpr float kRoundMagic = 12582912.0f;
inline constexpr i32 kRoundMagicBits = 0x4b400000;

// The rendered program's constants live in kvjit::spec and are used unqualified.
namespace spec {}
using namespace spec;

}  // namespace kvjit
