// Matrix products, conversions and arithmetic against plain loops.
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <regex>

#include "call/oracle.h"
#include "support.h"

using namespace kvjit;
using test::baseline_kernel;
using test::kernel;
using test::run;

namespace {

using Half = _Float16;  // the host compiler's

unsigned pair(Half low, Half high) {
    return std::bit_cast<std::uint16_t>(low) | unsigned{std::bit_cast<std::uint16_t>(high)} << 16;
}

Half low_half(unsigned pair) {
    return std::bit_cast<Half>(static_cast<std::uint16_t>(pair));
}

Half high_half(unsigned pair) {
    return low_half(pair >> 16);
}

bool same(Half a, Half b) {
    return a != a ? b != b : std::bit_cast<std::uint16_t>(a) == std::bit_cast<std::uint16_t>(b);
}

bool same(float a, float b) {
    return a != a ? b != b : std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

// Values where rounding, overflow and subnormals are decided, and many others.
std::vector<float> interesting_floats(int random) {
    std::vector<float> values = {0.0f,     -0.0f,        1.0f,     -1.0f,      65504.0f, 65519.0f, 65520.0f, 1e-7f,
                                 5.97e-8f, 2.980232e-8f, 2.98e-8f, 6.1035e-5f, 1e30f,    -1e30f,   1e-40f,   0.1f};
    values.push_back(std::numeric_limits<float>::infinity());
    values.push_back(-std::numeric_limits<float>::infinity());
    values.push_back(std::numeric_limits<float>::quiet_NaN());
    std::mt19937 random_bits(7);
    for (int i = 0; i < random; ++i) values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random_bits())));
    while (values.size() % 32 != 0) values.push_back(0.5f);
    return values;
}

constexpr std::string_view kMultiply = R"(
    struct Lane { float c[4]; u32 a[4]; u32 b[2]; };
    Lane lane = static_cast<const Lane*>(args.in)[thread_index()];
    mma_16x8x16<f16_t>(lane.c, lane.a, lane.b);
    for (i32 i = 0; i < 4; ++i) static_cast<float*>(args.out)[4 * thread_index() + i] = lane.c[i];
)";
const std::string kMultiplyBfloat16 = std::regex_replace(std::string(kMultiply), std::regex("f16_t"), "bf16_t");

std::uint16_t half_bits(float x) {
    return std::bit_cast<std::uint16_t>(static_cast<Half>(x));
}
std::uint16_t bfloat16_bits(float x) {
    return test::to_bfloat16(static_cast<double>(x));
}

/// A product of small integers, whose operands `bits` makes.
void check_product(const rt::ImagePtr& image, std::uint16_t (*bits)(float)) {
    std::mt19937 random(3);
    const auto small = [&] { return static_cast<float>(static_cast<int>(random() % 17) - 8); };
    float a[16][16], b[16][8], c[16][8];
    for (auto& row : a)
        for (float& x : row) x = small();
    for (auto& row : b)
        for (float& x : row) x = small();
    for (auto& row : c)
        for (float& x : row) x = small() / 4;
    struct Lane {
        float c[4];
        unsigned a[4], b[2];
    };
    Lane lanes[32];
    for (int l = 0; l < 32; ++l) {  // PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point types"
        const int group = l >> 2, in_group = l % 4;
        const auto at = [&](int i) {
            return unsigned{bits(a[i % 4 / 2 ? group + 8 : group][in_group * 2 + (i & 1) + (i < 4 ? 0 : 8)])};
        };
        const auto bt = [&](int i) { return unsigned{bits(b[in_group * 2 + (i & 1) + (i >= 2 ? 8 : 0)][group])}; };
        for (int i = 0; i < 4; ++i) lanes[l].a[i] = at(2 * i) | at(2 * i + 1) << 16;
        for (int i = 0; i < 2; ++i) lanes[l].b[i] = bt(2 * i) | bt(2 * i + 1) << 16;
        for (int i = 0; i < 4; ++i) lanes[l].c[i] = c[i < 2 ? group : group + 8][in_group * 2 + (i & 1)];
    }
    float out[32][4];
    run(image, {.threads = 32}, {.in = lanes, .out = out});
    for (int l = 0; l < 32; ++l) {
        for (int i = 0; i < 4; ++i) {
            const int row = (l >> 2) + (i < 2 ? 0 : 8), column = l % 4 * 2 + (i & 1);
            float sum = c[row][column];
            for (int k = 0; k < 16; ++k) sum += a[row][k] * b[k][column];
            CHECK(out[l][i] == sum);
        }
    }
}

}  // namespace

TEST_CASE("a product of matrices, with and without the machine's instructions") {
    check_product(kernel(kMultiply), half_bits);
    check_product(baseline_kernel(kMultiply), half_bits);
    check_product(kernel(kMultiplyBfloat16), bfloat16_bits);
}

TEST_CASE("load_matrices distributes rows, or columns, over the lanes") {
    const auto image = kernel(R"(
        struct Shared { u16 rows[32][8]; };
        auto& shared = shared_memory<Shared>();
        const i32 t = thread_index();
        for (i32 i = 0; i < 8; ++i) shared.rows[31 - t][i] = static_cast<u16>(8 * t + i);
        warp_barrier();
        u32 r[4];
        load_matrices(r, shared.rows[31 - t]);
        for (i32 i = 0; i < 4; ++i) args.words[8 * t + i] = r[i];
        load_matrices_transposed(r, shared.rows[31 - t]);
        for (i32 i = 0; i < 4; ++i) args.words[8 * t + 4 + i] = r[i];
    )");
    unsigned out[32][8];
    run(image, {.threads = 32, .shared_bytes = 512}, {.words = out[0]});
    for (unsigned l = 0; l < 32; ++l) {
        for (unsigned m = 0; m < 4; ++m) {  // element (row, column) of matrix m is 64m + 8row + column
            const unsigned row = l / 4, column = 2 * (l % 4);
            const unsigned first = 64 * m + 8 * row + column;
            CHECK(out[l][m] == (first | (first + 1) << 16));
            const unsigned turned = 64 * m + 8 * column + row;
            CHECK(out[l][4 + m] == (turned | (turned + 8) << 16));
        }
    }
}

TEST_CASE("every half becomes its float, and back; floats round as the host has it") {
    constexpr std::string_view kBody = R"(
        const i64 count = args.number;
        for (i64 i = thread_index(); i < 65536; i += 32) {
            args.words[i] = __builtin_bit_cast(u32, half_to_float(static_cast<u16>(i)));
        }
        const float* in = static_cast<const float*>(args.in);
        u32* out = static_cast<u32*>(args.out);
        for (i64 i = thread_index(); i < count; i += 32) out[i] = float_to_half(in[i]) | pack_halves(0.0f, in[i]);
    )";
    const std::vector<float> in = interesting_floats(20000);
    for (const auto& image : {kernel(kBody), baseline_kernel(kBody)}) {
        std::vector<unsigned> floats(65536), halves(in.size());
        run(image, {.threads = 32},
            {.in = in.data(), .out = halves.data(), .words = floats.data(), .number = static_cast<long>(in.size())});
        for (unsigned i = 0; i < 65536; ++i) {
            if (!same(std::bit_cast<float>(floats[i]), static_cast<float>(low_half(i)))) FAIL(i);
        }
        for (std::size_t i = 0; i < in.size(); ++i) {
            const Half expected = static_cast<Half>(in[i]);
            if (!same(low_half(halves[i]), expected) || !same(high_half(halves[i]), expected)) FAIL(in[i]);
        }
    }
}

TEST_CASE("arithmetic of pairs of halves rounds once") {
    constexpr std::string_view kBody = R"(
        const u32* in = static_cast<const u32*>(args.in);
        for (i64 i = thread_index(); i < args.number; i += 32) {
            const u32 a = in[3 * i], b = in[3 * i + 1], c = in[3 * i + 2];
            u32* out = args.words + 3 * i;
            out[0] = half2_sub(a, b);
            out[1] = half2_mul(a, b);
            out[2] = half2_fma(a, b, c);
        }
    )";
    constexpr std::size_t kCount = 40000;
    std::mt19937 random(11);
    std::vector<unsigned> in(3 * kCount);
    for (unsigned& x : in) x = static_cast<unsigned>(random());
    // 1025.5 less 2^-21: rounded to float first, it would become 1026.
    in[0] = pair(Half(0.50048828125f), 0);
    in[1] = pair(Half(0.9990234375f), 0);
    in[2] = pair(Half(1025), 0);
    // Long double holds every product of halves exactly, and its sum with a third.
    const auto expected = [](Half a, Half b, Half c, int which) -> Half {
        const long double x = a, y = b, z = c;
        switch (which) {
            case 0:
                return static_cast<Half>(static_cast<float>(a) - static_cast<float>(b));
            case 1:
                return static_cast<Half>(static_cast<float>(a) * static_cast<float>(b));
            default:
                return static_cast<Half>(x * y + z);
        }
    };
    for (const auto& image : {kernel(kBody), baseline_kernel(kBody)}) {
        std::vector<unsigned> out(3 * kCount);
        run(image, {.threads = 32}, {.in = in.data(), .words = out.data(), .number = kCount});
        for (std::size_t i = 0; i < kCount; ++i) {
            for (int which = 0; which < 3; ++which) {
                CAPTURE(i);
                CAPTURE(which);
                const unsigned *x = &in[3 * i], got = out[3 * i + which];
                if (!same(low_half(got), expected(low_half(x[0]), low_half(x[1]), low_half(x[2]), which)) ||
                    !same(high_half(got), expected(high_half(x[0]), high_half(x[1]), high_half(x[2]), which)))
                    FAIL(got);
            }
        }
    }
}

TEST_CASE("every bfloat16 becomes its float, and back; floats round to the nearest") {
    constexpr std::string_view kBody = R"(
        for (i64 i = thread_index(); i < 65536; i += 32) {
            args.words[i] = __builtin_bit_cast(u32, bfloat16_to_float(static_cast<u16>(i)));
        }
        const float* in = static_cast<const float*>(args.in);
        u32* out = static_cast<u32*>(args.out);
        for (i64 i = thread_index(); i < args.number; i += 32)
            out[i] = float_to_bfloat16(in[i]) | pack_bfloat16s(0.0f, in[i]);
    )";
    std::vector<float> in = interesting_floats(20000);
    for (const unsigned bits :
         {0x3f808000u, 0x3f818000u, 0x3f808001u, 0x7f7f7fffu, 0x7f7f8000u, 0x00008000u, 0x00018000u})
        in.push_back(std::bit_cast<float>(bits));
    std::vector<unsigned> floats(65536), numbers(in.size());
    run(kernel(kBody), {.threads = 32},
        {.in = in.data(), .out = numbers.data(), .words = floats.data(), .number = static_cast<long>(in.size())});
    for (unsigned i = 0; i < 65536; ++i) {
        const auto exact = static_cast<float>(test::from_bfloat16(static_cast<std::uint16_t>(i)));
        if (!same(std::bit_cast<float>(floats[i]), exact)) FAIL(i);
    }
    for (std::size_t i = 0; i < in.size(); ++i) {
        const std::uint16_t low = numbers[i] & 0xffff, high = static_cast<std::uint16_t>(numbers[i] >> 16);
        const std::uint16_t wanted = test::to_bfloat16(static_cast<double>(in[i]));
        const auto is_nan = [](std::uint16_t bits) { return (bits & 0x7fff) > 0x7f80; };
        if (is_nan(wanted) ? !is_nan(low) || !is_nan(high) : low != wanted || high != wanted) FAIL(in[i]);
    }
}

TEST_CASE("bfloat162_fma rounds once") {
    constexpr std::string_view kBody = R"(
        const u32* in = static_cast<const u32*>(args.in);
        for (i64 i = thread_index(); i < args.number; i += 32)
            args.words[i] = bfloat162_fma(in[3 * i], in[3 * i + 1], in[3 * i + 2]);
    )";
    constexpr std::size_t kCount = 40000;
    std::mt19937 random(12);
    // Exponents of -12 to 12: long double then holds each product and sum exactly.
    const auto number = [&] {
        return static_cast<unsigned>(random() % 2 << 15 | (115 + random() % 25) << 7 | random() % 128);
    };
    std::vector<unsigned> in(3 * kCount), out(kCount);
    for (unsigned& x : in) x = number() | number() << 16;
    run(kernel(kBody), {.threads = 32}, {.in = in.data(), .words = out.data(), .number = kCount});
    for (std::size_t i = 0; i < kCount; ++i) {
        for (const int shift : {0, 16}) {
            const auto value = [&](std::size_t at) {
                return static_cast<long double>(test::from_bfloat16(static_cast<std::uint16_t>(in[at] >> shift)));
            };
            const long double exact = value(3 * i) * value(3 * i + 1) + value(3 * i + 2);
            const auto nearest = test::to_bfloat16(static_cast<double>(exact));
            // A sum with more digits than a double's would be rounded twice here.
            if (static_cast<long double>(static_cast<double>(exact)) != exact) continue;
            if ((out[i] >> shift & 0xffff) != nearest) FAIL(i);
        }
    }
}

TEST_CASE("permute_bytes picks bytes of two words") {
    const auto image = kernel(R"(
        const u32* in = static_cast<const u32*>(args.in);
        args.words[thread_index()] = permute_bytes(in[0], in[1], in[2 + thread_index()]);
    )");
    unsigned in[34] = {0x33221100, 0x77665544, 0x3210, 0x7654, 0x5140, 0x0000, 0x4567}, out[32];
    run(image, {.threads = 32}, {.in = in, .words = out});
    CHECK(out[0] == 0x33221100);
    CHECK(out[1] == 0x77665544);
    CHECK(out[2] == 0x55114400);
    CHECK(out[3] == 0);
    CHECK(out[4] == 0x44556677);
}

TEST_CASE("and_xor keeps bits of a mask and flips bits, a negation flips both signs") {
    const auto image = kernel(R"(
        const u32* in = static_cast<const u32*>(args.in);
        if (thread_index() != 0) return;
        args.words[0] = and_xor(in[0], 0x00ff00ff, 0x60806080);
        args.words[1] = half2_negate(in[1]);
        args.words[2] = bfloat162_negate(in[2]);
    )");
    unsigned in[3] = {0x12345678, 0x3c008000, 0x3f80ffc0}, out[3];
    run(image, {.threads = 32}, {.in = in, .words = out});
    CHECK(out[0] == 0x60b460f8);
    CHECK(out[1] == 0xbc000000);
    CHECK(out[2] == 0xbf807fc0);
}

TEST_CASE("count_ones counts bits, opaque changes none") {
    const auto image = kernel(R"(
        const u32 word = static_cast<const u32*>(args.in)[thread_index()];
        args.words[2 * thread_index()] = static_cast<u32>(count_ones(word));
        args.words[2 * thread_index() + 1] = static_cast<u32>(opaque(static_cast<i32>(word)));
    )");
    std::mt19937 random(5);
    unsigned in[32] = {0, 1, 0x80000000, 0xffffffff}, out[64];
    for (int i = 4; i < 32; ++i) in[i] = static_cast<unsigned>(random());
    run(image, {.threads = 32}, {.in = in, .words = out});
    for (int i = 0; i < 32; ++i) {
        CHECK(out[2 * i] == static_cast<unsigned>(std::popcount(in[i])));
        CHECK(out[2 * i + 1] == in[i]);
    }
}

TEST_CASE("float32: fma is exact, reciprocal, exp2 and log2 as close as promised") {
    constexpr std::string_view kBody = R"(
        const float* in = static_cast<const float*>(args.in);
        for (i64 i = thread_index(); i < args.number; i += 32) {
            const float a = in[i], b = in[(i * 7 + 3) % args.number], c = in[(i * 13 + 5) % args.number];
            float* out = static_cast<float*>(args.out) + 6 * i;
            out[0] = fma(a, b, c);
            out[1] = reciprocal(a);
            out[2] = exp2(a);
            out[3] = log2(a);
            out[4] = max_nan(a, b);
            out[5] = fma(a, b, -(a * b));
        }
    )";
    std::vector<float> in = interesting_floats(4000);
    for (int i = -2000; i < 2000; ++i) in.push_back(static_cast<float>(i) * 0.0731f);
    const auto count = in.size();
    for (const auto& image : {kernel(kBody), baseline_kernel(kBody)}) {
        std::vector<float> out(6 * count);
        run(image, {.threads = 32}, {.in = in.data(), .out = out.data(), .number = static_cast<long>(count)});
        for (std::size_t i = 0; i < count; ++i) {
            const float a = in[i], b = in[(i * 7 + 3) % count], c = in[(i * 13 + 5) % count];
            CAPTURE(a);
            CAPTURE(b);
            CAPTURE(c);
            if (!same(out[6 * i], std::fma(a, b, c))) FAIL(out[6 * i]);
            const double exact = 1 / static_cast<double>(a);
            const bool is_normal = std::isnormal(a) && std::abs(exact) >= 0x1p-126;
            if (is_normal ? !(std::abs(out[6 * i + 1] - exact) <= 0x1p-22 * std::abs(exact))
                          : (a == 0 || !std::isfinite(a)) && !same(out[6 * i + 1], static_cast<float>(exact)))
                FAIL(out[6 * i + 1]);
            const double power = std::exp2(static_cast<double>(a));
            const float got = out[6 * i + 2];
            if (a != a)
                CHECK(got != got);
            else if (power < 0x1p-126 || power > std::numeric_limits<float>::max())
                CHECK(got == (power < 1 ? 0 : std::numeric_limits<float>::infinity()));
            else if (std::abs(got - power) > 0x1p-22 * power)
                FAIL(got);
            const double logarithm = std::log2(static_cast<double>(a));
            const float log = out[6 * i + 3];
            if (std::isfinite(logarithm) ? !(std::abs(log - logarithm) <= 0x1p-21 * std::max(1.0, std::abs(logarithm)))
                                         : !same(log, static_cast<float>(logarithm)))
                FAIL(log);
            const float larger = a != a || b != b ? NAN : a > b || (a == b && !std::signbit(a)) ? a : b;
            if (!same(out[6 * i + 4], larger)) FAIL(out[6 * i + 4]);
        }
    }
}
