// The CPU templates' vector layer, at every level that this machine runs, against the C library and exact arithmetic.
#include "primitives.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "levels.h"
#include "numbers.h"

using namespace kvjit::test;

namespace {

constexpr double kLeastNormal = std::numeric_limits<float>::min();

/// Distance in units of the last place of `exact` as float32; what is below 2^-126 has to be 0.
double ulps(float value, double exact) {
    if (std::isinf(value) && std::fabs(exact) > std::numeric_limits<float>::max()) return 0;
    if (exact < kLeastNormal) return value == 0 ? 0 : kInf;
    return std::fabs(value - exact) / std::ldexp(1.0, std::ilogb(exact) - 23);
}

/// Floats whose bits step through the whole range, with an odd stride so that low bits vary too.
std::vector<float> sampled_floats(std::uint32_t stride) {
    std::vector<float> values;
    for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += stride)
        values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    // Ties of both formats, and their neighbours.
    for (const Format16 format : {kHalf, kBfloat16}) {
        for (std::uint32_t bits = 0; bits + 1 < format.infinity(); ++bits) {
            const auto middle = static_cast<float>((value_of(format, bits) + value_of(format, bits + 1)) / 2);
            for (const float x : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, kInf)})
                values.push_back(x);
        }
    }
    // Where rounding turns to infinity.
    for (const float x : {65504.0f, 65519.99f, 65520.0f, 65536.0f, kInf, 0.0f}) values.insert(values.end(), {x, -x});
    for (const float x : {0x1.fep127f, 0x1.fefffep127f, 0x1.ffp127f, 0x1.fffffep127f})
        values.insert(values.end(), {x, -x});
    values.resize((values.size() + 15) / 16 * 16);
    return values;
}

/// Applies one of the table's functions and hands the results back.
template <class To, class From>
std::vector<To> apply(void (*f)(const From*, To*, kvjit::abi::i64), const std::vector<From>& from) {
    std::vector<To> to(from.size());
    f(from.data(), to.data(), static_cast<kvjit::abi::i64>(from.size()));
    return to;
}

/// A format of 16 bits, and the level's conversions from and to it.
struct Conversions {
    Format16 format;
    void (*Primitives::*widen)(const unsigned short*, float*, kvjit::abi::i64);
    void (*Primitives::*narrow)(const float*, unsigned short*, kvjit::abi::i64);
};
constexpr Conversions kConversions[] = {
    {kHalf, &Primitives::half_to_float, &Primitives::float_to_half},
    {kBfloat16, &Primitives::bfloat16_to_float, &Primitives::float_to_bfloat16},
};

/// f(level, conversions) for each level and format.
template <class F>
void for_each_conversion(F&& f) {
    for (const Primitives* level : runnable_levels()) {
        for (const Conversions& conversions : kConversions) {
            CAPTURE(std::string(level->level));
            CAPTURE(conversions.format.fraction_bits);
            f(*level, conversions);
        }
    }
}

std::vector<float> uniform(float low, float high, std::size_t count) {
    std::mt19937 random(20240601);
    std::uniform_real_distribution<float> distribution(low, high);
    std::vector<float> values(count);
    for (float& x : values) x = distribution(random);
    return values;
}

}  // namespace

TEST_CASE("every number of 16 bits becomes its float") {
    std::vector<std::uint16_t> numbers(65536);
    std::iota(numbers.begin(), numbers.end(), std::uint16_t{0});
    for_each_conversion([&](const Primitives& level, const Conversions& conversions) {
        const std::vector<float> floats = apply(level.*conversions.widen, numbers);
        int wrong = 0;
        for (unsigned i = 0; i < 65536; ++i) {
            const double exact = value_of(conversions.format, i);
            const bool same = std::isnan(exact) ? std::isnan(floats[i])
                                                : std::bit_cast<std::uint32_t>(floats[i]) ==
                                                      std::bit_cast<std::uint32_t>(static_cast<float>(exact));
            wrong += !same;
        }
        CHECK(wrong == 0);
    });
}

TEST_CASE("floats become the nearest number of 16 bits, ties to even") {
    const std::vector<float> floats = sampled_floats(9973);
    for_each_conversion([&](const Primitives& level, const Conversions& conversions) {
        const Format16 format = conversions.format;
        const std::vector<std::uint16_t> numbers = apply(level.*conversions.narrow, floats);
        int wrong = 0;
        for (std::size_t i = 0; i < floats.size(); ++i)
            wrong += std::isnan(floats[i]) ? (numbers[i] & 0x7fff) <= format.infinity()
                                           : numbers[i] != nearest(format, floats[i]);
        CHECK(wrong == 0);
    });
}

TEST_CASE("all levels make the same 16 bits of a NaN") {
    std::vector<float> nans(16);
    const std::uint32_t bits[] = {0x7fc00000, 0xffc00000, 0x7f800001, 0xffa54321, 0x7fffe000};
    std::ranges::transform(bits, nans.begin(), [](std::uint32_t nan) { return std::bit_cast<float>(nan); });
    const auto expected = [](Format16 format) -> std::vector<std::uint16_t> {
        return format.fraction_bits == 10 ? std::vector<std::uint16_t>{0x7e00, 0xfe00, 0x7e00, 0xff2a, 0x7fff}
                                          : std::vector<std::uint16_t>{0x7fc0, 0xffc0, 0x7fc0, 0xffe5, 0x7fff};
    };
    for_each_conversion([&](const Primitives& level, const Conversions& conversions) {
        std::vector<std::uint16_t> numbers = apply(level.*conversions.narrow, nans);
        numbers.resize(std::size(bits));
        CHECK(numbers == expected(conversions.format));
    });
}

TEST_CASE("exp is good to 2 ulp, and 0 where it would be subnormal") {
    for (const Primitives* level : runnable_levels()) {
        CAPTURE(std::string(level->level));
        const std::pair<float, float> ranges[] = {{-110.0f, 95.0f}, {-87.34f, -87.33f}, {-1.0f, 1.0f}, {-1e-6f, 1e-6f}};
        for (const auto& [low, high] : ranges) {
            CAPTURE(high);
            const std::vector<float> x = uniform(low, high, 1 << 20);
            const std::vector<float> y = apply(level->exp, x);
            double worst = 0;
            for (std::size_t i = 0; i < x.size(); ++i)
                worst = std::max(worst, ulps(y[i], std::exp(static_cast<double>(x[i]))));
            CHECK(worst <= 2);
        }
    }
}

TEST_CASE("the short power of 2 is good to 2^-22, or to 2^-13, and 0 where it would be subnormal") {
    std::vector<float> x;
    for (float value = 16; value > -130; value -= 0x1p-12f + std::fabs(value) * 0x1p-20f) x.push_back(value);
    for (const float value : {-0.0f, -1e-30f, -1.0f, -2.0f, -126.0f, -1e30f, -kInf, -std::numeric_limits<float>::max()})
        x.push_back(value);
    x.resize((x.size() + 15) / 16 * 16);
    for (const Primitives* level : runnable_levels()) {
        CAPTURE(std::string(level->level));
        for (const auto& [power, allowed] : {std::pair{level->exp2_short, 0x1p-22}, {level->exp2_shorter, 0x1p-13}}) {
            CAPTURE(allowed);
            const std::vector<float> y = apply(power, x);
            double worst = 0;
            for (std::size_t i = 0; i < x.size(); ++i) {
                const double exact = std::exp2(static_cast<double>(x[i]));
                worst = std::max(worst, exact < kLeastNormal ? y[i] / kLeastNormal : std::fabs(y[i] / exact - 1));
            }
            CHECK(worst <= allowed);
            CHECK(worst > 0.1 * allowed);
            const std::vector<float> special = apply(power, {0.0f, -kInf, -kNaN, kNaN, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f,
                                                             0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f});
            CHECK(special[0] == 1);
            CHECK(special[1] == 0);
            CHECK(std::isnan(special[2]));
            CHECK(std::isnan(special[3]));
        }
    }
}

// So that products by tiles, which AVX2 may have beside it, can be compared with those by vectors.
TEST_CASE("the short power of 2 has the same bits at all levels that fuse multiplications") {
    std::vector<float> x;
    for (int i = 0; i < 1 << 20; ++i) x.push_back(-130.0f + static_cast<float>(i) * 0x1.1p-13f);
    for (int i = 0; i < 16; ++i) x.push_back(-std::ldexp(1.0f, -i));
    std::vector<float> powers;  // of the first such level
    for (const Primitives* level : runnable_levels()) {
        if (const std::string name = level->level; name == "v1" || name == "v2") continue;
        CAPTURE(std::string(level->level));
        std::vector<float> all = apply(level->exp2_short, x);
        const std::vector<float> shorter = apply(level->exp2_shorter, x);
        all.insert(all.end(), shorter.begin(), shorter.end());
        if (powers.empty()) powers = all;
        CHECK(all == powers);
    }
}

TEST_CASE("exp and log at their special values") {
    const std::vector<float> x = {-kInf, -200, -1e30f, 0, -0.0f, kInf, 200, 1e30f, kNaN, 1, 0, 0, 0, 0, 0, 0};
    for (const Primitives* level : runnable_levels()) {
        CAPTURE(std::string(level->level));
        const std::vector<float> y = apply(level->exp, x);
        for (int i = 0; i < 3; ++i) CHECK(std::bit_cast<std::uint32_t>(y[i]) == 0);
        for (int i = 3; i < 5; ++i) CHECK(y[i] == 1);
        for (int i = 5; i < 8; ++i) CHECK(y[i] == kInf);
        CHECK(std::isnan(y[8]));
        const std::vector<double> logs = apply(level->log, x);
        CHECK(std::isnan(logs[0]));
        CHECK(logs[3] == -kInf);
        CHECK(logs[4] == -kInf);
        CHECK(logs[5] == kInf);
        CHECK(std::isnan(logs[8]));
        CHECK(logs[9] == 0);
    }
}

TEST_CASE("log is right to a float64's 1e-10") {
    std::vector<float> x = uniform(0.5f, 2.0f, 1 << 16);
    for (float f = 0x1p-140f; f < kInf; f *= 1.37f) x.push_back(f);
    x.push_back(0x1p-149f);
    x.resize((x.size() + 15) / 16 * 16, 1.0f);
    for (const Primitives* level : runnable_levels()) {
        CAPTURE(std::string(level->level));
        const std::vector<double> y = apply(level->log, x);
        double worst = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
            const double exact = std::log(static_cast<double>(x[i]));
            if (exact != 0) worst = std::max(worst, std::fabs(y[i] / exact - 1));
        }
        CHECK(worst < 1e-10);
    }
}

TEST_CASE("every code becomes its float") {
    std::vector<signed char> int8(256);
    std::vector<unsigned char> int4(256);
    for (int i = 0; i < 256; ++i) int8[i] = static_cast<signed char>(int4[i] = static_cast<unsigned char>(i));
    for (const Primitives* level : runnable_levels()) {
        CAPTURE(std::string(level->level));
        const std::vector<float> bytes = apply(level->int8_to_float, int8);
        std::vector<float> nibbles(512);
        level->int4_to_float(int4.data(), nibbles.data(), 512);
        const auto wrapped = [](int code, int count) {
            return static_cast<float>(code < count / 2 ? code : code - count);
        };
        int wrong = 0;
        for (int i = 0; i < 256; ++i) {
            wrong += bytes[i] != wrapped(i, 256);
            wrong += nibbles[2 * i] != wrapped(i % 16, 16);
            wrong += nibbles[2 * i + 1] != wrapped(i / 16, 16);
        }
        CHECK(wrong == 0);
    }
}

namespace {

/// `count` rows of 32 bytes, of which no two are the same.
struct ByteRows {
    explicit ByteRows(int count) : bytes(static_cast<std::size_t>(32 * count)) {
        std::iota(bytes.begin(), bytes.end(), static_cast<char>(0));
        for (int row = 0; row < count; ++row) rows.push_back(bytes.data() + 32 * row);
        // 512 bytes are each number twice: those of later rows are 1 further on.
        for (std::size_t i = 256; i < bytes.size(); ++i) bytes[i] = static_cast<char>(bytes[i] + i / 32);
    }
    /// Bytes 4 * word.. of a row as the memory has them.
    int word(int row, int word) const {
        int number = 0;
        std::copy_n(rows[static_cast<std::size_t>(row)] + 4 * word, 4, reinterpret_cast<char*>(&number));
        return number;
    }
    unsigned byte(int row, int at) const { return static_cast<unsigned char>(rows[static_cast<std::size_t>(row)][at]); }

    std::vector<char> bytes;
    std::vector<const char*> rows;
};

}  // namespace

TEST_CASE("words of 16 rows become columns, bytes of 4 rows are dealt out") {
    const ByteRows rows(16);
    for (const Primitives* level : runnable_levels()) {
        CAPTURE(std::string(level->level));
        std::vector<int> columns(128), zipped(48);
        level->load_columns(columns.data(), rows.rows.data());
        level->zip_rows(zipped.data(), rows.rows.data());
        int wrong = 0;
        for (int i = 0; i < 128; ++i) wrong += columns[static_cast<std::size_t>(i)] != rows.word(i % 16, i / 16);
        for (int i = 0; i < 192; ++i) {
            const auto number = static_cast<unsigned>(zipped[static_cast<std::size_t>(i / 4)]);
            wrong += (number >> (8 * (i % 4)) & 255) != rows.byte(i % 4, i / 4 % 32);
        }
        // Each two rows are a long one.
        const char* const long_rows[] = {rows.rows[0], rows.rows[2], rows.rows[4], rows.rows[6]};
        std::vector<int> zipped_long(96);
        level->zip_long_rows(zipped_long.data(), long_rows);
        for (int i = 0; i < 384; ++i) {
            const auto number = static_cast<unsigned>(zipped_long[static_cast<std::size_t>(i / 4)]);
            const int byte = i / 4 < 64 ? i / 4 : i / 4 - 32;
            wrong += (number >> (8 * (i % 4)) & 255) != rows.byte(i % 4 * 2, byte);
        }
        CHECK(wrong == 0);
    }
}

TEST_CASE("products of bytes, unsigned and signed, are summed exactly; digits are the numbers' bytes") {
    constexpr int kCount = 1 << 14;
    std::mt19937 random(5);
    std::vector<unsigned char> a(4 * kCount);
    std::vector<signed char> b(4 * kCount);
    std::vector<int> numbers(kCount);
    for (std::size_t i = 0; i < a.size(); ++i) {
        a[i] = i < 64 ? 255 : static_cast<unsigned char>(random());
        b[i] = i < 64 ? -128 : static_cast<signed char>(random());
    }
    for (int& number : numbers) number = static_cast<int>(random());
    for (const Primitives* level : runnable_levels()) {
        CAPTURE(std::string(level->level));
        std::vector<int> sums(kCount, 7);
        level->add_byte_products(sums.data(), a.data(), b.data(), kCount);
        const std::vector<int> digits = apply(level->deal_digits, numbers);
        int wrong = 0;
        for (std::size_t i = 0; i < sums.size(); ++i) {
            int expected = 7;
            for (std::size_t k = 4 * i; k < 4 * i + 4; ++k) expected += a[k] * b[k];
            unsigned dealt = 0;
            for (std::size_t k = 0; k < 4; ++k)
                dealt |= (static_cast<unsigned>(numbers[i / 4 * 4 + k]) >> (8 * (i % 4)) & 255) << (8 * k);
            wrong += sums[i] != expected || static_cast<unsigned>(digits[i]) != dealt;
        }
        CHECK(wrong == 0);
    }
}
