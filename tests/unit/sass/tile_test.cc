// What tiles hold, worked by hand.
#include "inspect/sass/tile.h"

#include <doctest/doctest.h>

#include "generator/program.h"

namespace kvjit::tool::sass {
namespace {

constexpr int kShared = 227 * 1024;  // that a block may have on sm_90

Attention attention(const char* spec, bool is_decode, Multiplier multiplier) {
    const auto parsed = gen::parse_spec(spec);
    REQUIRE(parsed.has_value());
    return {is_decode, multiplier, parsed->group, gen::cache_format(*parsed), kShared};
}

TEST_CASE("decode of a quantised cache") {
    // int8 codes, and float16 scales of 8 elements each
    const auto tile =
        tile_of(attention("head_dim=128,group=4,quant_bit=8,quant_group=8,t3=f16", true, Multiplier::kWarps), 48);
    REQUIRE(tile.has_value());
    CHECK(tile->keys == 32);
    CHECK(tile->rows == 4);
    CHECK(tile->cache_bytes == 2 * 32 * (128 + 32));
    CHECK(tile->operations == 4 * 4 * 32 * 128);
    CHECK(tile->copies_of_lane(16) == 32 * 128 / 16 / 32);
    CHECK(tile->copies_of_lane(4) == 32 * 32 / 4 / 32);  // of scales
}

TEST_CASE("decode of other caches, and of rows that leave no room for two stages, has tiles of 16 keys") {
    CHECK(tile_of(attention("head_dim=128,group=4", true, Multiplier::kWarps), 24)->keys == 16);
    CHECK(tile_of(attention("head_dim=256,group=4,quant_bit=8,quant_group=8,t3=f16", true, Multiplier::kWarps), 96)
              ->keys == 16);
}

TEST_CASE("warpgroups have 16 rows a warp, and keys by their products") {
    const Attention prefill = attention("head_dim=128,group=4", false, Multiplier::kWarpgroups);
    // 8 steps of 16 elements with all keys; for 16 keys one product with all elements
    const auto tile = tile_of(prefill, 8 + 128 / 16);
    REQUIRE(tile.has_value());
    CHECK(tile->keys == 128);
    CHECK(tile->rows == 16);
    CHECK(tile->operations == 4 * 16 * 128 * 128);
    CHECK(tile->copies_of_lane(16) == 128 * 256 / 16 / 128);  // one of the two copies
    CHECK(tile_of(prefill, 8 + 64 / 16)->keys == 64);
    CHECK(tile_of(attention("head_dim=64,group=4", false, Multiplier::kWarpgroups), 4 + 4)->keys == 64);
    CHECK(tile_of(attention("head_dim=192,group=4", false, Multiplier::kWarpgroups), 12 + 4 * 3)->keys == 64);
    CHECK(tile_of(attention("head_dim=256,group=4", false, Multiplier::kWarpgroups), 16 + 4 * 2)->keys == 64);
    CHECK(!tile_of(prefill, 8 + 256 / 16));
}

TEST_CASE("prefill's keys follow from its products") {
    const Attention prefill = attention("head_dim=128,group=4", false, Multiplier::kWarps);
    // 32 rows: 8 keys and 16 elements a product of keys, 8 elements and 16 keys a product of values
    const auto tile = tile_of(prefill, 2 * 8 * 8 + 2 * 16 * 4);
    REQUIRE(tile.has_value());
    CHECK(tile->keys == 64);
    CHECK(tile->rows == 32);
    CHECK(tile->copies_of_lane(16) == 64 * 256 / 16 / 128);
    CHECK(tile_of(prefill, 128)->keys == 32);
    CHECK(tile_of(prefill, 100).error() == "100 products are no tile of 128 elements");
    CHECK(!tile_of(prefill, 512));  // 128 keys: more than shared memory holds
    CHECK(!tile_of(prefill, 0));
}

TEST_CASE("prefill multiplies quantised keys twice") {
    const Attention prefill = attention("head_dim=64,group=4,quant_bit=8", false, Multiplier::kWarps);
    // 64 keys: keys and residuals 2 * 2 * 8 * 4, values 2 * 8 * 4
    CHECK(tile_of(prefill, 2 * 2 * 8 * 4 + 2 * 8 * 4)->keys == 64);
}

TEST_CASE("rows are filled up to whole products") {
    // 72 elements, 5 products of 16: copies of 80 elements
    const auto tile = tile_of(attention("head_dim=72,group=4", false, Multiplier::kWarps), 2 * 8 * 5 * 2);
    REQUIRE(tile.has_value());
    CHECK(tile->keys == 64);
    CHECK(tile->copies_of_lane(16) == 64 * 160 / 16 / 128);
    CHECK(tile->cache_bytes == 2 * 64 * 144);
}

TEST_CASE("dot products take the rows that there are, in steps") {
    const auto one = tile_of(attention("head_dim=128,group=1", true, Multiplier::kLanes), 0);
    REQUIRE(one.has_value());
    CHECK(one->keys == 32);  // four warps' keys and values, in rows of 272 bytes: 69632 of 73728
    CHECK(one->rows == 1);
    CHECK(one->room == 16);
    CHECK(one->computed_rows == 1);
    CHECK(one->value_products == 1 * 32 * 128 / 32);
    CHECK(tile_of(attention("head_dim=128,group=6,t1=f32", true, Multiplier::kLanes), 0)->computed_rows == 8);
    CHECK(tile_of(attention("head_dim=128,group=32,t1=f32", true, Multiplier::kLanes), 0)->rows == 16);
    const auto prefill = tile_of(attention("head_dim=256,group=4,t1=f32", false, Multiplier::kLanes), 0);
    CHECK(prefill->rows == 8);
    CHECK(prefill->computed_rows == prefill->room);
}

}  // namespace
}  // namespace kvjit::tool::sass
