// AMX's tiles, the instructions where the machine has them and their emulation at each level, against the manual's
// description of TDPBF16PS, TDPBSSD and TDPBUSD in scalar code.
#include "tiles.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "levels.h"

extern "C" {
extern const kvjit::test::Tiles tiles_emulated_v3, tiles_emulated_v4, tiles_amx;
}

using namespace kvjit::test;

namespace {

using Row = std::array<std::uint32_t, 16>;
using Tile = std::array<Row, 16>;

TileAt at(Tile& tile) {
    return {tile.data(), sizeof(Row)};
}

/// Whether the machine has AMX and the system permits its use (arch_prctl, ARCH_REQ_XCOMP_PERM of tile data).
bool has_amx() {
    return __builtin_cpu_supports("amx-bf16") && syscall(SYS_arch_prctl, 0x1023, 18) == 0;
}

std::vector<const Tiles*> runnable_tiles() {
    std::vector<const Tiles*> all = {&tiles_emulated_v3};
    if (runs_level("v4")) all.push_back(&tiles_emulated_v4);
    if (has_amx()) all.push_back(&tiles_amx);
    if (!has_amx()) MESSAGE("this machine lacks AMX: only its emulation is tested");
    return all;
}

float flushed(float x) {
    return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x;
}
float bfloat16(std::uint32_t bits) {
    return flushed(std::bit_cast<float>(bits << 16));
}

Tile expected_sums(const Tile& sum, const Tile& a, const Tile& b) {
    Tile result;
    for (std::size_t m = 0; m < 16; ++m) {
        for (std::size_t n = 0; n < 16; ++n) {
            float products[2] = {0, 0};
            for (std::size_t k = 0; k < 16; ++k) {
                for (std::uint32_t half = 0; half < 2; ++half) {
                    const float left = bfloat16(a[m][k] >> 16 * half & 0xffff),
                                right = bfloat16(b[k][n] >> 16 * half & 0xffff);
                    products[half] = flushed(std::fma(left, right, products[half]));
                }
            }
            const float both = flushed(products[0] + products[1]);
            result[m][n] = std::bit_cast<std::uint32_t>(flushed(flushed(std::bit_cast<float>(sum[m][n])) + both));
        }
    }
    return result;
}

bool is_nan(std::uint32_t bits) {
    return std::isnan(std::bit_cast<float>(bits));
}

/// Bits in which the exponents lie around `middle`, of about `spread` values.
struct Kind {
    const char* name;
    int middle, spread;
    double special;  // share of zeros, infinities and NaN
};

std::uint32_t random_bfloat16(const Kind& kind, std::mt19937_64& random) {
    const std::uint32_t sign = random() % 2 << 15;
    if (std::uniform_real_distribution<>()(random) < kind.special) {
        constexpr std::uint32_t kSpecial[] = {0, 0x7f80, 0x7fc0, 0x0001};
        return sign | kSpecial[random() % 4];
    }
    const int exponent = std::clamp(kind.middle + static_cast<int>(random() % kind.spread) - kind.spread / 2, 0, 254);
    return sign | static_cast<std::uint32_t>(exponent) << 7 | random() % 128;
}

Tile random_pairs(const Kind& kind, std::mt19937_64& random) {
    Tile tile;
    for (Row& row : tile) {
        for (std::uint32_t& pair : row) pair = random_bfloat16(kind, random) | random_bfloat16(kind, random) << 16;
    }
    return tile;
}

Tile random_sums(const Kind& kind, std::mt19937_64& random) {
    const Kind sums = {"", 2 * kind.middle - 127, kind.spread, kind.special / 8};
    Tile tile;
    for (Row& row : tile) {
        for (std::uint32_t& sum : row) sum = random_bfloat16(sums, random) << 16 | (random() & 0xffff);
    }
    return tile;
}

/// 16 rows of 64 bytes, each alone on pages between guard pages, at the end of its page or at its begin.
class GuardedRows {
public:
    explicit GuardedRows(bool at_end) : page_(sysconf(_SC_PAGESIZE)) {
        memory_ = static_cast<char*>(mmap(nullptr, bytes(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        REQUIRE(memory_ != MAP_FAILED);
        for (long i = 0; i < 16; ++i)
            REQUIRE(mprotect(memory_ + (2 * i + 1) * page_, page(), PROT_READ | PROT_WRITE) == 0);
        first_ = memory_ + page_ + (at_end ? page_ - 64 : 0);
    }
    ~GuardedRows() { munmap(memory_, bytes()); }
    GuardedRows(const GuardedRows&) = delete;
    GuardedRows& operator=(const GuardedRows&) = delete;

    TileAt at() { return {first_, 2 * page_}; }
    char* row(long i) { return first_ + i * 2 * page_; }

private:
    std::size_t page() const { return static_cast<std::size_t>(page_); }
    std::size_t bytes() const { return 33 * page(); }

    long page_;
    char* memory_;
    char* first_;
};

}  // namespace

TEST_CASE("products of tiles are the manual's, bit for bit") {
    std::mt19937_64 random(20261123);
    MESSAGE("seed 20261123");
    const Kind kinds[] = {{"ordinary", 127, 8, 0},      {"wide", 127, 120, 0},    {"all", 127, 254, 0},
                          {"near underflow", 64, 9, 0}, {"subnormal", 2, 8, 0.1}, {"near overflow", 191, 6, 0},
                          {"special", 127, 20, 0.02}};
    for (const Tiles* tiles : runnable_tiles()) {
        CAPTURE(std::string(tiles->level));
        for (const Kind& kind : kinds) {
            CAPTURE(std::string(kind.name));
            int wrong = 0, numbers = 0;
            for (int round = 0; round < 50; ++round) {
                Tile a = random_pairs(kind, random), b = random_pairs(kind, random), sum = random_sums(kind, random);
                const Tile expected = expected_sums(sum, a, b);
                tiles->multiply(at(sum), at(a), at(b));
                for (std::size_t i = 0; i < 256; ++i) {
                    const std::uint32_t got = sum[i / 16][i % 16], wanted = expected[i / 16][i % 16];
                    wrong += !(got == wanted || (is_nan(got) && is_nan(wanted)));
                    numbers += !is_nan(wanted);
                }
            }
            CHECK(wrong == 0);
            CHECK(numbers > 0);
        }
    }
}

TEST_CASE("products of bytes are exact, whatever the shapes, and touch nothing else") {
    std::mt19937_64 random(20261127);
    MESSAGE("seed 20261127");
    using Bytes = std::array<std::uint8_t, 64>;
    const auto random_bytes = [&](std::array<Bytes, 16>& tile) {
        // Both ends of the range more often than by chance.
        for (Bytes& row : tile)
            for (std::uint8_t& byte : row)
                byte = static_cast<std::uint8_t>(random() % 4 ? random() : 127 + random() % 2);
    };
    for (const Tiles* tiles : runnable_tiles()) {
        CAPTURE(std::string(tiles->level));
        for (int round = 0; round < 50; ++round) {
            std::array<Bytes, 16> a, b;
            random_bytes(a);
            random_bytes(b);
            Tile sum;
            for (Row& row : sum)
                for (std::uint32_t& number : row) number = static_cast<std::uint32_t>(random());
            const bool is_signed = round % 2 == 0;
            Tile expected = sum;
            for (std::size_t m = 0; m < kByteRows; ++m) {
                for (std::size_t n = 0; n < kByteColumns; ++n) {
                    for (std::size_t k = 0; k < kByteDepth; ++k) {
                        const int left = is_signed ? static_cast<std::int8_t>(a[m][k]) : a[m][k];
                        const int right = static_cast<std::int8_t>(b[k / 4][4 * n + k % 4]);
                        expected[m][n] += static_cast<std::uint32_t>(left * right);
                    }
                }
            }
            (is_signed ? tiles->multiply_signed : tiles->multiply_unsigned)(at(sum), {a.data(), 64}, {b.data(), 64});
            CHECK(sum == expected);
        }
    }
}

TEST_CASE("a tile's rows are 64 bytes at any stride, and nothing else is touched") {
    std::mt19937_64 random(7);
    for (const Tiles* tiles : runnable_tiles()) {
        CAPTURE(std::string(tiles->level));
        for (const bool at_end : {false, true}) {
            Tile numbers = random_pairs({"", 127, 200, 0}, random), back{};
            GuardedRows rows(at_end);
            tiles->copy(rows.at(), at(numbers));
            for (long i = 0; i < 16; ++i)
                CHECK(std::memcmp(rows.row(i), &numbers[static_cast<std::size_t>(i)], 64) == 0);
            tiles->copy(at(back), rows.at());
            CHECK(back == numbers);
        }
        std::vector<char> bytes(16 * 67 + 1, 'x');  // odd addresses
        Tile numbers = random_pairs({"", 127, 200, 0}, random);
        tiles->copy({bytes.data() + 1, 67}, at(numbers));
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            if (i == 0 || (i - 1) % 67 >= 64) CHECK(bytes[i] == 'x');
        }
        Tile same{};
        tiles->copy(at(same), {numbers.data(), 0});
        for (const Row& row : same) CHECK(row == numbers[0]);
    }
}

TEST_CASE("a tile becomes zero, and eight of them are apart") {
    for (const Tiles* tiles : runnable_tiles()) {
        CAPTURE(std::string(tiles->level));
        std::mt19937_64 random(1);
        Tile tile = random_pairs({"", 127, 200, 0}, random);
        tiles->zero(at(tile));
        CHECK(tile == Tile{});
        tiles->fill_all(at(tile));
        for (std::uint32_t i = 0; i < 8; ++i) CHECK(std::ranges::count(tile[i], 100 * i + 1) == 16);
    }
}

TEST_CASE("tiles are configured as the manual has it: a byte that is reserved and not 0 is a fault") {
    const unsigned char* config = tiles_amx.config();
    std::array<int, 64> expected{};
    expected[0] = 1;  // palette
    for (std::size_t tile = 0; tile < 8; ++tile) {
        expected[16 + 2 * tile] = 64;  // bytes of a row, 16 bits
        expected[48 + tile] = 16;      // rows
    }
    for (std::size_t i = 0; i < 64; ++i) {
        CAPTURE(i);
        CHECK(config[i] == expected[i]);
    }
    CHECK(reinterpret_cast<std::uintptr_t>(config) % 64 == 0);
    // Of tiles 0, 3 and 7: b, sum, a.
    std::array<int, 64> shaped{};
    shaped[0] = 1;
    shaped[16] = shaped[22] = 4 * kByteColumns;
    shaped[30] = kByteDepth;
    shaped[48] = kByteDepth / 4;
    shaped[51] = shaped[55] = kByteRows;
    for (std::size_t i = 0; i < 64; ++i) {
        CAPTURE(i);
        CHECK(tiles_amx.byte_config()[i] == shaped[i]);
    }
}
