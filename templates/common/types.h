// Storage types of tensors and the plain integers that templates use. Templates see no system header.
#pragma once

#include "common/abi.h"

/// Templates are built from small functions; none of them may cost a call, or pass a vector through memory.
#define KVJIT_INLINE [[gnu::always_inline]] inline

namespace kvjit {

using i8 = __INT8_TYPE__;
using u8 = __UINT8_TYPE__;
using i16 = __INT16_TYPE__;
using u16 = __UINT16_TYPE__;
using i32 = __INT32_TYPE__;
using u32 = __UINT32_TYPE__;
using abi::i64;
using u64 = __UINT64_TYPE__;

/// IEEE binary16, as stored. float is its own storage type.
struct f16_t {
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

/// Bytes of `elements` consecutive elements (not bytes' worth of them: an int4 element is half a byte).
template <class T>
constexpr i64 bytes_of(i64 elements) {
    return kSame<T, i4x2_t> ? elements / 2 : elements * i64{sizeof(T)};
}

inline constexpr float kInfinity = __builtin_inff();
inline constexpr float kNan = __builtin_nanf("");

/// 1.5 * 2^23. x + kRoundMagic has ulp 1 for |x| <= 2^22, so adding it rounds x to the nearest even integer, which then
/// is the sum's bits minus kRoundMagicBits; and subtracting it again gives that integer as a float.
inline constexpr float kRoundMagic = 12582912.0f;
inline constexpr i32 kRoundMagicBits = 0x4b400000;

// The constants of the program at hand live in kvjit::spec and are used unqualified.
namespace spec {}
using namespace spec;

}  // namespace kvjit
