// How a decode's keys are split.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "cuda/splits.h"

namespace kvjit::rt {
namespace {

constexpr std::int64_t kUnit = 64;
constexpr std::int64_t kSlots = 264;
constexpr std::int64_t kDecodePart = 8 * 136 * 4;

/// Part of the slots that work, over all waves.
double busy(std::int64_t blocks) {
    const std::int64_t waves = (blocks + kSlots - 1) / kSlots;
    return static_cast<double>(blocks) / static_cast<double>(waves * kSlots);
}

TEST_CASE("splits cover all keys, in units") {
    for (std::int64_t tiles = 1; tiles < 3000; tiles += 1 + tiles / 7) {
        for (std::int64_t keys = 0; keys < 200000; keys += 1 + keys / 3) {
            const Splits splits = choose_splits({tiles, tiles}, kSlots, keys, kUnit, kDecodePart);
            CAPTURE(tiles);
            CAPTURE(keys);
            REQUIRE(splits.count >= 1);
            CHECK(splits.keys % kUnit == 0);
            CHECK(splits.keys > 0);
            CHECK(splits.keys * splits.count >= keys);
            CHECK(splits.keys * (splits.count - 1) < (keys > 0 ? keys : 1));
            CHECK(splits.least % kUnit == 0);
            CHECK(splits.least > 0);
        }
    }
}

TEST_CASE("a full GPU and short sequences are not split") {
    CHECK(choose_splits({264, 264}, kSlots, 8192, kUnit, kDecodePart).count == 1);
    CHECK(choose_splits({512, 512}, kSlots, 8192, kUnit, kDecodePart).count == 1);
    CHECK(choose_splits({100000, 100000}, kSlots, 131072, kUnit, kDecodePart).count == 1);
    CHECK(choose_splits({1, 1}, kSlots, 256, kUnit, kDecodePart).count == 1);
    CHECK(choose_splits({8, 8}, kSlots, 0, kUnit, kDecodePart).count == 1);
}

TEST_CASE("on a full GPU long sequences are split, short ones beside them not, and blocks stay few") {
    for (const std::int64_t tiles : {264, 512, 2048}) {
        CAPTURE(tiles);
        const Splits splits = choose_splits({tiles, tiles}, kSlots, 131072, kUnit, kDecodePart);
        CHECK(splits.count > 1);
        CHECK(splits.keys >= 4096);
        CHECK(splits.least == 4096);
        CHECK(tiles * splits.count <= 32 * kSlots);
    }
    CHECK(choose_splits({512, 512}, kSlots, 131072, kUnit, kDecodePart).count == 16);
    // Blocks for further new tokens count, too, and so does memory.
    CHECK(choose_splits({2048, 512}, kSlots, 131072, kUnit, kDecodePart).count == 4);
    CHECK(choose_splits({512, 512}, kSlots, 131072, kUnit, 4 * kDecodePart).count == 7);
    CHECK(choose_splits({100000, 512}, kSlots, 131072, kUnit, kDecodePart).count == 1);
}

TEST_CASE("few tiles with many keys fill the GPU") {
    for (const std::int64_t tiles : {1, 4, 8, 32, 100, 140, 200}) {
        CAPTURE(tiles);
        const Splits splits = choose_splits({tiles, tiles}, kSlots, 131072, kUnit, kDecodePart);
        CHECK(splits.count > 1);
        CHECK(busy(tiles * splits.count) > (tiles == 1 ? 0.4 : 0.75));
    }
}

TEST_CASE("prefill's splits cover all keys, in units, fit on the GPU at once, and take little memory") {
    for (std::int64_t tiles = 1; tiles < 3000; tiles += 1 + tiles / 7) {
        for (std::int64_t keys = 0; keys < 200000; keys += 1 + keys / 3) {
            for (const std::int64_t rows : {32, 64, 128}) {
                const std::int64_t part = rows * 130 * 4;
                const Splits splits = choose_prefill_splits({tiles, tiles}, kSlots, keys, rows, part);
                CAPTURE(tiles);
                CAPTURE(keys);
                REQUIRE(splits.count >= 1);
                CHECK(splits.keys % kUnit == 0);
                CHECK(splits.keys * splits.count >= keys);
                CHECK(splits.keys * (splits.count - 1) < (keys > 0 ? keys : 1));
                CHECK(splits.least % kUnit == 0);
                CHECK(splits.least >= 4 * rows);
                if (splits.count == 1) continue;
                CHECK(splits.keys >= splits.least);
                CHECK(tiles * splits.count <= kSlots);
                CHECK(tiles * splits.count * part <= 64 << 20);
            }
        }
    }
}

TEST_CASE("few tokens over many keys fill the GPU; many tokens and few keys stay whole") {
    constexpr std::int64_t kPart = 128 * 130 * 4;
    CHECK(choose_prefill_splits({8, 8}, kSlots, 32768, 128, kPart).count >= 30);
    CHECK(choose_prefill_splits({16, 16}, kSlots, 32768, 128, kPart).count == 16);
    CHECK(choose_prefill_splits({133, 133}, kSlots, 32768, 128, kPart).count == 1);
    CHECK(choose_prefill_splits({2048, 2048}, kSlots, 131072, 128, kPart).count == 1);
    CHECK(choose_prefill_splits({8, 8}, kSlots, 512, 128, kPart).count == 1);
    CHECK(choose_prefill_splits({8, 8}, kSlots, 0, 128, kPart).count == 1);
    // Places without rows take memory, not the GPU.
    CHECK(choose_prefill_splits({160, 128}, kSlots, 8192, 128, kPart).count == 2);
    CHECK(choose_prefill_splits({160, 160}, kSlots, 8192, 128, kPart).count == 1);
    CHECK(choose_prefill_splits({2048, 8}, kSlots, 131072, 128, kPart).count == 1);
    CHECK(choose_prefill_splits({0, 0}, kSlots, 32768, 128, kPart).count >= 1);
}

TEST_CASE("a fixed split depends on the keys alone") {
    CHECK(fixed_splits(256, 1000).keys == 256);
    CHECK(fixed_splits(256, 1000).count == 4);
    CHECK(fixed_splits(256, 1024).count == 4);
    CHECK(fixed_splits(256, 1025).count == 5);
    CHECK(fixed_splits(256, 0).count == 1);
}

TEST_CASE("one split has all keys") {
    for (const std::int64_t keys : {0, 1, 64, 65, 1000}) {
        CAPTURE(keys);
        const Splits whole = one_split(keys, kUnit);
        CHECK(whole.count == 1);
        CHECK(whole.keys % kUnit == 0);
        CHECK(whole.keys >= std::max<std::int64_t>(1, keys));
        CHECK(whole.keys < keys + kUnit + (keys == 0));
        CHECK(whole.least == whole.keys);
    }
}

}  // namespace
}  // namespace kvjit::rt
