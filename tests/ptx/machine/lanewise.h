// Instructions that compute each lane from the same lane of their sources: handlers, and the functions they apply.
// Names of functions are those of the PTX ISA, section 9.7; T is the instruction's type.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "ptx/machine/half.h"
#include "ptx/machine/warp.h"

namespace kvjit::ptx {

// ---- Handlers ----------------------------------------------------------------------------------------------------

/// Sources of types A..., in order; results are computed for all lanes, and kept of the active ones.
template <class D, auto kFunction, class A>
void unary(Warp& warp, const Instruction& in) {
    const A* a = warp.lanes<A>(in.source(0));
    D results[kLanes];
    for (int l = 0; l < kLanes; ++l) results[l] = static_cast<D>(kFunction(a[l]));
    warp.put(in.destination(0), results);
}

template <class D, auto kFunction, class A, class B = A>
void binary(Warp& warp, const Instruction& in) {
    const A* a = warp.lanes<A>(in.source(0));
    const B* b = warp.lanes<B>(in.source(1));
    D results[kLanes];
    for (int l = 0; l < kLanes; ++l) results[l] = static_cast<D>(kFunction(a[l], b[l]));
    warp.put(in.destination(0), results);
}

template <class D, auto kFunction, class A>
void ternary(Warp& warp, const Instruction& in) {
    const A* a = warp.lanes<A>(in.source(0));
    const A* b = warp.lanes<A>(in.source(1));
    const A* c = warp.lanes<A>(in.source(2));
    D results[kLanes];
    for (int l = 0; l < kLanes; ++l) results[l] = static_cast<D>(kFunction(a[l], b[l], c[l]));
    warp.put(in.destination(0), results);
}

template <auto kFunction, class A>
void compare(Warp& warp, const Instruction& in) {
    const A* a = warp.lanes<A>(in.source(0));
    const A* b = warp.lanes<A>(in.source(1));
    u32 bits = 0;
    for (int l = 0; l < kLanes; ++l) bits |= static_cast<u32>(kFunction(a[l], b[l])) << l;
    warp.put_predicate(in.destination(0), bits);
}

template <auto kFunction>
void combine_predicates(Warp& warp, const Instruction& in) {
    warp.put_predicate(in.destination(0), kFunction(warp.predicate(in.source(0)), warp.predicate(in.source(1))));
}
inline void not_predicate(Warp& warp, const Instruction& in) {
    warp.put_predicate(in.destination(0), ~warp.predicate(in.source(0)));
}

template <class T>
void move(Warp& warp, const Instruction& in) {
    T results[kLanes];
    std::memcpy(results, warp.lanes<T>(in.source(0)), sizeof results);
    warp.put(in.destination(0), results);
    warp.copy_written(in.destination(0), in.source(0), in.source(0), kAllLanes);
}
inline void move_predicate(Warp& warp, const Instruction& in) {
    warp.put_predicate(in.destination(0), warp.predicate(in.source(0)));
    warp.copy_written(in.destination(0), in.source(0), in.source(0), kAllLanes);
}

/// selp: the first where the predicate holds.
template <class T>
void select(Warp& warp, const Instruction& in) {
    const T* a = warp.lanes<T>(in.source(0));
    const T* b = warp.lanes<T>(in.source(1));
    warp.check_written(in.source(2));
    const u32 choice = warp.predicate(in.source(2));
    T results[kLanes];
    for (int l = 0; l < kLanes; ++l) results[l] = (choice >> l & 1) != 0 ? a[l] : b[l];
    warp.put(in.destination(0), results);
    warp.copy_written(in.destination(0), in.source(0), in.source(1), choice);
}

/// div, rem: the result for a divisor of 0 is unspecified.
template <auto kFunction, class T>
void divide(Warp& warp, const Instruction& in) {
    const T* a = warp.lanes<T>(in.source(0));
    const T* b = warp.lanes<T>(in.source(1));
    T results[kLanes] = {};
    for (int l = 0; l < kLanes; ++l) {
        if (!warp.is_active(l)) continue;
        if (b[l] == 0) throw Fault(FaultKind::kUndefined, "a division by zero", l);
        results[l] = kFunction(a[l], b[l]);
    }
    warp.put(in.destination(0), results);
}

/// lop3 d, a, b, c, table: bit 4*a + 2*b + c of the table, for each bit of a, b and c.
inline void combine_three(Warp& warp, const Instruction& in) {
    const u32* a = warp.lanes<u32>(in.source(0));
    const u32* b = warp.lanes<u32>(in.source(1));
    const u32* c = warp.lanes<u32>(in.source(2));
    const u32* table = warp.lanes<u32>(in.source(3));
    u32 results[kLanes];
    for (int l = 0; l < kLanes; ++l) {
        results[l] = 0;
        for (u32 bit = 0; bit < 32; ++bit) {
            const u32 index = (a[l] >> bit & 1) * 4 + (b[l] >> bit & 1) * 2 + (c[l] >> bit & 1);
            results[l] |= (table[l] >> index & 1) << bit;
        }
    }
    warp.put(in.destination(0), results);
}

/// bfi d, a, b, position, length: b with the lowest bits of a inserted.
template <class T>
void insert_bits(Warp& warp, const Instruction& in) {
    const T* a = warp.lanes<T>(in.source(0));
    const T* b = warp.lanes<T>(in.source(1));
    const u32* position = warp.lanes<u32>(in.source(2));
    const u32* length = warp.lanes<u32>(in.source(3));
    constexpr u32 kBits = 8 * sizeof(T);
    T results[kLanes];
    for (int l = 0; l < kLanes; ++l) {
        const u32 begin = position[l] & 0xff, count = std::min(length[l] & 0xff, kBits);
        results[l] = b[l];
        if (begin >= kBits || count == 0) continue;
        const T field = static_cast<T>(~T{0}) >> (kBits - count);
        results[l] = static_cast<T>((b[l] & ~(field << begin)) | ((a[l] & field) << begin));
    }
    warp.put(in.destination(0), results);
}

/// mov of a register from its parts, the lowest first, and into them.
template <class Whole, class Part>
void pack(Warp& warp, const Instruction& in) {
    Whole results[kLanes];
    const Part* low = warp.lanes<Part>(in.source(0));
    const Part* high = warp.lanes<Part>(in.source(1));
    for (int l = 0; l < kLanes; ++l) results[l] = static_cast<Whole>(low[l] | Whole{high[l]} << (8 * sizeof(Part)));
    warp.put(in.destination(0), results);
}
template <class Whole, class Part>
void unpack(Warp& warp, const Instruction& in) {
    Part low[kLanes], high[kLanes];
    const Whole* whole = warp.lanes<Whole>(in.source(0));
    for (int l = 0; l < kLanes; ++l) {
        low[l] = static_cast<Part>(whole[l]);
        high[l] = static_cast<Part>(whole[l] >> (8 * sizeof(Part)));
    }
    warp.put(in.destination(0), low);
    warp.put(in.destination(1), high);
}

// ---- Integers: results wrap ----------------------------------------------------------------------------------------

template <class T>
using Wrapping = std::conditional_t<sizeof(T) < 4, u32, std::make_unsigned_t<T>>;

inline constexpr auto kCopy = [](auto a) { return a; };
inline constexpr auto kAdd = []<class T>(T a, T b) { return static_cast<T>(Wrapping<T>(a) + Wrapping<T>(b)); };
inline constexpr auto kSub = []<class T>(T a, T b) { return static_cast<T>(Wrapping<T>(a) - Wrapping<T>(b)); };
inline constexpr auto kMul = []<class T>(T a, T b) { return static_cast<T>(Wrapping<T>(a) * Wrapping<T>(b)); };
inline constexpr auto kMad = []<class T>(T a, T b, T c) { return kAdd(kMul(a, b), c); };
inline constexpr auto kNegate = []<class T>(T a) { return kSub(T{0}, a); };
inline constexpr auto kMin = [](auto a, auto b) { return b < a ? b : a; };
inline constexpr auto kMax = [](auto a, auto b) { return a < b ? b : a; };
inline constexpr auto kAnd = [](auto a, auto b) { return a & b; };
inline constexpr auto kOr = [](auto a, auto b) { return a | b; };
inline constexpr auto kXor = [](auto a, auto b) { return a ^ b; };
inline constexpr auto kNot = [](auto a) { return ~a; };
inline constexpr auto kPopulation = [](auto a) { return std::popcount(a); };

/// The product in twice the width.
template <class Wide>
inline constexpr auto kMulWide =
    [](auto a, auto b) { return static_cast<Wide>(static_cast<Wide>(a) * static_cast<Wide>(b)); };
template <class Wide>
inline constexpr auto kMulHigh =
    []<class T>(T a, T b) { return static_cast<T>((static_cast<Wide>(a) * static_cast<Wide>(b)) >> (8 * sizeof(T))); };

inline constexpr auto kDiv = []<class T>(T a, T b) {
    return std::is_signed_v<T> && b == static_cast<T>(-1) ? kNegate(a) : static_cast<T>(a / b);
};
inline constexpr auto kRem = []<class T>(T a, T b) {
    return std::is_signed_v<T> && b == static_cast<T>(-1) ? T{0} : static_cast<T>(a % b);
};

// Amounts beyond the width are as the width.
inline constexpr auto kShl = []<class T>(T a, u32 by) {
    return by >= 8 * sizeof(T) ? T{0} : static_cast<T>(Wrapping<T>(a) << by);
};
inline constexpr auto kShr = []<class T>(T a, u32 by) {
    constexpr u32 kLast = 8 * sizeof(T) - 1;
    if (by > kLast) return static_cast<T>(std::is_signed_v<T> ? a >> kLast : T{0});
    return static_cast<T>(a >> by);
};

/// prmt without a mode: nibble i of the selector chooses byte i; its highest bit replicates that byte's sign.
inline constexpr auto kPermute = [](u32 a, u32 b, u32 selector) {
    const u64 bytes = a | u64{b} << 32;
    u32 result = 0;
    for (u32 i = 0; i < 4; ++i) {
        const u32 nibble = selector >> 4 * i & 15;
        const auto byte = static_cast<u8>(bytes >> 8 * (nibble & 7));
        const u32 sign = (byte & 0x80) != 0 ? 0xff : 0;
        result |= ((nibble & 8) != 0 ? sign : byte) << 8 * i;
    }
    return result;
};

// ---- Comparisons: of numbers that may be NaN, the plain ones are false, those with u are true ----------------------

inline constexpr auto kEq = [](auto a, auto b) { return a == b; };
inline constexpr auto kLt = [](auto a, auto b) { return a < b; };
inline constexpr auto kLe = [](auto a, auto b) { return a <= b; };
inline constexpr auto kGt = [](auto a, auto b) { return a > b; };
inline constexpr auto kGe = [](auto a, auto b) { return a >= b; };
inline constexpr auto kNum = [](float a, float b) { return a == a && b == b; };
inline constexpr auto kNan = [](float a, float b) { return !kNum(a, b); };
inline constexpr auto kNeInteger = [](auto a, auto b) { return a != b; };
inline constexpr auto kNe = [](float a, float b) { return a < b || a > b; };
inline constexpr auto kEqu = [](float a, float b) { return !kNe(a, b); };
inline constexpr auto kNeu = [](float a, float b) { return !(a == b); };
inline constexpr auto kLtu = [](float a, float b) { return !(a >= b); };
inline constexpr auto kLeu = [](float a, float b) { return !(a > b); };
inline constexpr auto kGtu = [](float a, float b) { return !(a <= b); };
inline constexpr auto kGeu = [](float a, float b) { return !(a < b); };

// ---- float32 -------------------------------------------------------------------------------------------------------

inline constexpr float kCanonicalNan = std::bit_cast<float>(0x7fff'ffffU);  // of every operation's result
inline constexpr auto kCanonical = [](float a) { return a == a ? a : kCanonicalNan; };
inline constexpr auto kAddF = [](float a, float b) { return kCanonical(a + b); };
inline constexpr auto kSubF = [](float a, float b) { return kCanonical(a - b); };
inline constexpr auto kMulF = [](float a, float b) { return kCanonical(a * b); };
inline constexpr auto kDivF = [](float a, float b) { return kCanonical(a / b); };
inline constexpr auto kFma = [](float a, float b, float c) { return kCanonical(std::fma(a, b, c)); };
inline constexpr auto kNegatePair = [](u32 a) { return a ^ 0x8000'8000U; };
inline constexpr auto kNegateF = [](u32 a) { return a ^ 0x8000'0000U; };
inline constexpr auto kAbsF = [](u32 a) { return a & 0x7fff'ffffU; };

/// +0 counts as larger than -0. Of a NaN and a number, min and max give the number, with .NaN the NaN.
inline constexpr auto kIsLess = [](float a, float b) { return a < b || (a == b && std::signbit(a) > std::signbit(b)); };
inline constexpr auto kMinF = [](float a, float b) {
    if (kNan(a, b)) return a == a ? a : b == b ? b : kCanonicalNan;
    return kIsLess(b, a) ? b : a;
};
inline constexpr auto kMaxF = [](float a, float b) {
    if (kNan(a, b)) return a == a ? a : b == b ? b : kCanonicalNan;
    return kIsLess(a, b) ? b : a;
};
inline constexpr auto kMinNan = [](float a, float b) { return kNan(a, b) ? kCanonicalNan : kMinF(a, b); };
inline constexpr auto kMaxNan = [](float a, float b) { return kNan(a, b) ? kCanonicalNan : kMaxF(a, b); };

// ---- Approximations -------------------------------------------------------------------------------------------------

/// -1 to 1, the same for the same bits.
inline double noise_of(float a) {
    u64 z = std::bit_cast<u32>(a) * 0x9e37'79b9'7f4a'7c15U;
    z = (z ^ (z >> 29)) * 0xbf58'476d'1ce4'e5b9U;
    return static_cast<double>(z >> 11) * 0x1p-52 - 1;
}
inline float flushed(float a) {
    return std::fpclassify(a) == FP_SUBNORMAL ? std::copysign(0.0F, a) : a;
}

/// ex2.approx.ftz.f32: relative error up to 2^-22; exact where the ISA's table has the result.
inline float power_of_two(float a, bool has_noise) {
    a = flushed(a);
    if (std::isnan(a)) return kCanonicalNan;
    if (std::isinf(a)) return a > 0 ? a : 0;
    if (a == 0) return 1;
    const double error = has_noise ? 0x1p-22 * noise_of(a) : 0;
    return flushed(static_cast<float>(std::exp2(static_cast<double>(a)) * (1 + error)));
}

/// lg2.approx.f32: error up to 2^-22, absolute between 0.5 and 2, else relative.
inline float logarithm_of_two(float a, bool has_noise) {
    if (std::isnan(a) || a < 0) return kCanonicalNan;
    if (a == 0) return -std::numeric_limits<float>::infinity();
    if (std::isinf(a)) return a;
    const double exact = std::log2(static_cast<double>(a)), error = has_noise ? 0x1p-22 * noise_of(a) : 0;
    return static_cast<float>(a > 0.5F && a < 2 ? exact + error : exact * (1 + error));
}

/// rcp.approx.ftz.f32: relative error up to 2^-23.
inline float reciprocal(float a, bool has_noise) {
    a = flushed(a);
    if (std::isnan(a)) return kCanonicalNan;
    if (a == 0 || std::isinf(a)) return 1 / a;
    const double error = has_noise ? 0x1p-23 * noise_of(a) : 0;
    return flushed(static_cast<float>((1 + error) / static_cast<double>(a)));
}

template <auto kFunction>
void approximate(Warp& warp, const Instruction& in) {
    const auto* a = warp.lanes<float>(in.source(0));
    float results[kLanes] = {};
    for (int l = 0; l < kLanes; ++l) {
        if (warp.is_active(l)) results[l] = kFunction(a[l], warp.options().has_noise);
    }
    warp.put(in.destination(0), results);
}

// ---- float16 and bfloat16 -------------------------------------------------------------------------------------------

inline constexpr auto kHalfToFloat = [](u16 a) { return kCanonical(static_cast<float>(Float16::widen(a))); };
template <class Format>
inline constexpr auto kFloatToNarrow = [](float a) { return Format::narrow(static_cast<double>(a)); };

/// cvt.rn.f16x2.f32 d, a, b: a becomes the upper half.
template <class Format>
inline constexpr auto kFloatsToPair = [](float a, float b) {
    return static_cast<u32>(Format::narrow(static_cast<double>(a))) << 16 | Format::narrow(static_cast<double>(b));
};

/// Both halves, each by itself.
template <auto kFunction>
inline constexpr auto kPairwise = [](auto... pairs) {
    const u32 low = kFunction(static_cast<u16>(pairs)...);
    return low | static_cast<u32>(kFunction(static_cast<u16>(pairs >> 16)...)) << 16;
};
// Sums and products of two narrow numbers are exact in double, but for sums of numbers too far apart to matter.
inline constexpr auto kHalfAdd = [](u16 a, u16 b) { return Float16::narrow(Float16::widen(a) + Float16::widen(b)); };
inline constexpr auto kHalfSub = [](u16 a, u16 b) { return Float16::narrow(Float16::widen(a) - Float16::widen(b)); };
inline constexpr auto kHalfMul = [](u16 a, u16 b) { return Float16::narrow(Float16::widen(a) * Float16::widen(b)); };
template <class Format>
inline constexpr auto kNarrowFma = [](u16 a, u16 b, u16 c) { return fused_multiply_add<Format>(a, b, c); };

}  // namespace kvjit::ptx
