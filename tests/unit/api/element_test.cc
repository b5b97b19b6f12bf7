// half and bfloat16, bit pattern by bit pattern, against arithmetic in double that knows nothing of float's bits.
#include <doctest/doctest.h>

#include <cfenv>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "kvjit/kvjit.hpp"

namespace {

static_assert(sizeof(kvjit::half) == 2 && std::is_trivial_v<kvjit::half>);
static_assert(sizeof(kvjit::bfloat16) == 2 && std::is_trivial_v<kvjit::bfloat16>);
static_assert(!std::is_convertible_v<float, kvjit::half>, "rounding is asked for");
static_assert(std::is_convertible_v<kvjit::half, float> &&
              !std::is_constructible_v<kvjit::half, kvjit::bfloat16&, int>);
static_assert(kvjit::dtype_of<kvjit::half> == KVJIT_F16 && kvjit::dtype_of<double> == KVJIT_AUTO);

struct Format {
    int mantissa_bits, bias;

    int infinity() const { return (2 * bias + 1) << mantissa_bits; }
    /// Of a magnitude below infinity. At infinity, what would come next.
    double value(int magnitude) const {
        const int exponent = magnitude >> mantissa_bits, mantissa = magnitude % (1 << mantissa_bits);
        const int hidden = exponent == 0 ? 0 : 1 << mantissa_bits;
        return std::ldexp(hidden + mantissa, (exponent == 0 ? 1 : exponent) - bias - mantissa_bits);
    }
};

template <class T>
constexpr Format kFormat = {10, 15};
template <>
constexpr Format kFormat<kvjit::bfloat16> = {7, 127};

template <class T>
int narrowed(double value) {
    return T(static_cast<float>(value)).bits();
}

template <class T>
void check_widening() {
    for (int bits = 0; bits < 0x10000; ++bits) {
        const int magnitude = bits & 0x7fff, infinity = kFormat<T>.infinity();
        const float widened = T::from_bits(static_cast<std::uint16_t>(bits));
        INFO("bits ", bits, " are ", widened);
        REQUIRE(std::signbit(widened) == (bits != magnitude));
        REQUIRE(std::isnan(widened) == (magnitude > infinity));
        REQUIRE(std::isinf(widened) == (magnitude == infinity));
        if (magnitude < infinity) REQUIRE(std::fabs(widened) == kFormat<T>.value(magnitude));
        const int quiet = magnitude > infinity ? 1 << (kFormat<T>.mantissa_bits - 1) : 0;
        REQUIRE(T(widened).bits() == (bits | quiet));
    }
}

/// Numbers between each two neighbours, infinity among them, of either sign.
template <class T>
void check_rounding() {
    constexpr float kUp = std::numeric_limits<float>::infinity();
    for (int lower = 0; lower < kFormat<T>.infinity(); ++lower) {
        const double sum = kFormat<T>.value(lower) + kFormat<T>.value(lower + 1);
        const auto middle = static_cast<float>(sum / 2);
        REQUIRE(middle == sum / 2);
        INFO("between ", lower, " and the next, around ", middle);
        REQUIRE(narrowed<T>(middle) == lower + lower % 2);
        REQUIRE(narrowed<T>(std::nextafter(middle, 0.0F)) == lower);
        REQUIRE(narrowed<T>(std::nextafter(middle, kUp)) == lower + 1);
        REQUIRE(narrowed<T>(-middle) == (0x8000 | (lower + lower % 2)));
        REQUIRE(narrowed<T>(-std::nextafter(middle, kUp)) == (0x8000 | (lower + 1)));
    }
}

template <class T>
void check_ends() {
    const int infinity = kFormat<T>.infinity();
    CHECK(narrowed<T>(std::numeric_limits<float>::max()) == infinity);
    CHECK(narrowed<T>(-std::numeric_limits<float>::infinity()) == (0x8000 | infinity));
    CHECK(narrowed<T>(std::numeric_limits<float>::denorm_min()) == 0);
    CHECK(narrowed<T>(-0.0) == 0x8000);
    CHECK((narrowed<T>(std::nanf("1")) & 0x7fff) > infinity);
}

}  // namespace

TEST_CASE_TEMPLATE("all bit patterns widen to their values, and come back", T, kvjit::half, kvjit::bfloat16) {
    check_widening<T>();
}

TEST_CASE_TEMPLATE("what lies between two neighbours goes to the nearer one, halfway to the even one", T, kvjit::half,
                   kvjit::bfloat16) {
    check_rounding<T>();
    check_ends<T>();
}

TEST_CASE("narrowing doesn't go by the thread's rounding mode") {
    volatile float third = 1.0F / 3;
    const int nearest = kvjit::half(third).bits();
    for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
        std::fesetround(mode);
        CHECK(kvjit::half(third).bits() == nearest);
        CHECK(kvjit::half(third / 65536).bits() == 85);  // 2^24 / 3 / 65536 = 85.33
    }
    std::fesetround(FE_TONEAREST);
}

#if defined(__FLT16_MANT_DIG__)
TEST_CASE("half agrees with the compiler's own type") {
    for (std::uint64_t bits = 0; bits < 0x100000000; bits += 4099) {
        const float value = kvjit::detail::float_of(static_cast<std::uint32_t>(bits));
        if (std::isnan(value)) continue;
        REQUIRE(static_cast<float>(kvjit::half(value)) == static_cast<float>(static_cast<_Float16>(value)));
    }
}
#endif

TEST_CASE("elements of a new vector are zeros") {
    const std::vector<kvjit::half> values(3);
    for (const float value : values) CHECK(value == 0);
}
