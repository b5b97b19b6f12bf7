// From a listing to figures.
#include "inspect/sass/analysis.h"

#include <doctest/doctest.h>

#include "inspect/sass/report.h"
#include "listing.h"

namespace kvjit::tool::sass {
namespace {

constexpr Attention kAttention = {true, Multiplier::kWarps, 4, {128, 16, 0, 128}, 227 * 1024};

TEST_CASE("attention's hot loop is a tile") {
    const Analysis found = analyse(listing_of(kDecode), kAttention);
    CHECK(found.code.pipes.all() == 23);
    CHECK(found.code.spills == 1);
    REQUIRE(found.hot.has_value());
    const HotLoop& loop = *found.hot;
    CHECK(loop.address == 0x20);
    CHECK(loop.code.pipes.all() == 17);
    CHECK(loop.code.pipes[Pipe::kTensor] == 2);
    CHECK(loop.code.spills == 0);
    CHECK(loop.code.access_bytes == 16);
    CHECK(loop.code.product == "m16n8k16");
    REQUIRE(loop.tile.has_value());
    CHECK(loop.tile->keys == 16);
    CHECK(loop.tile->shared_cycles == 1 + 4 + 4 + 4);  // STS, two copies, a load
    CHECK(loop.tile->flight_bytes == 3 * 2 * 512);     // the wait leaves two groups pending
    CHECK(loop.tile->copies == 1);
    CHECK(loop.tile->trips == 1);
    CHECK(loop.lines.empty());
}

TEST_CASE("of warpgroups it is told what runs beside no product") {
    const Lines before = {".L_x_1:",
                          "MUFU.EX2 R4, R5",
                          "LDGSTS.E.BYPASS.128 [R6], desc[UR4][R2.64]",
                          "@P1 BRA `(.L_x_2)",
                          ".L_x_2:",
                          "WARPGROUP.DEPBAR.LE gsb0, 0x0",
                          "F2FP.F16.F32.PACK_AB R8, R5, R4",
                          "BAR.SYNC.DEFER_BLOCKING 0x0",
                          "WARPGROUP.ARRIVE"};
    const Lines after = {"WARPGROUP.DEPBAR.LE gsb0, 0x1", "FENCE.VIEW.ASYNC.S", "@P0 BRA `(.L_x_1)", "EXIT"};
    const Lines products = joined({repeated({"HGMMA.64x64x16.F32 R24, gdesc[UR8], R24"}, 4),
                                   repeated({"HGMMA.64x64x16.F32 R40, R8, gdesc[UR4].tnspB, R40"}, 4)});
    const auto found = analyse(listing_of(joined({before, products, after})),
                               Attention{false, Multiplier::kWarpgroups, 4, {64, 16, 0, 64}, 227 * 1024})
                           .hot;
    REQUIRE(found.has_value());
    CHECK(found->code.product == "m64n64k16");
    CHECK(found->code.pipes[Pipe::kControl] == 7);
    REQUIRE(found->tile.has_value());
    CHECK(found->tile->keys == 64);
    CHECK(found->tile->group_products == 8 * 8);
    CHECK(found->tile->alone == 2);
    const Lines late = {".L_x_1:", "MUFU.EX2 R4, R5", "F2FP.F16.F32.PACK_AB R8, R5, R4", "WARPGROUP.ARRIVE"};
    const Lines wait = {"LDGSTS.E.BYPASS.128 [R6], desc[UR4][R2.64]", "WARPGROUP.DEPBAR.LE gsb0, 0x0",
                        "IADD3 R1, R1, R1, RZ", "@P0 BRA `(.L_x_1)", "EXIT"};
    const auto alone = analyse(listing_of(joined({late, products, wait})),
                               Attention{false, Multiplier::kWarpgroups, 4, {64, 16, 0, 64}, 227 * 1024})
                           .hot;
    REQUIRE(alone.has_value());
    CHECK(alone->tile->alone == 4);  // past the wait, and before the products of the next turn
    CHECK(found->tile->shared_cycles == 4 + 4 * (64 + 64) * 32 / 128 / 4 + 4 * 64 * 32 / 128 / 4);
}

TEST_CASE("other programs' is the innermost one that works on most of global memory") {
    const Lines search = {".L_x_1:", "LDG.E R4, desc[UR4][R2.64]", "LDG.E R5, desc[UR4][R2.64]", "@P0 BRA `(.L_x_1)"};
    const Lines copy = {".L_x_2:", "LDG.E.128 R4, desc[UR4][R2.64]", "STG.E.128 desc[UR4][R6.64], R4",
                        "@P1 BRA `(.L_x_2)"};
    const auto found = analyse(listing_of(joined({repeated(search, 1), copy, {"EXIT"}})), std::nullopt).hot;
    REQUIRE(found.has_value());
    CHECK(found->address == 0x30);
    CHECK(found->code.pipes.all() == 3);
    CHECK(found->code.access_bytes == 16);
    CHECK(!found->tile);
    CHECK(place_text(*found) == "as they stand there; at 0x30");
    const auto only_search = analyse(listing_of(joined({search, {"EXIT"}})), std::nullopt).hot;
    CHECK(only_search.error() == "no loop of the code stores or computes");
    CHECK(!analyse("", std::nullopt).hot);
}

TEST_CASE("code with more blocks than any kernel has is counted, not searched") {
    const Analysis found = analyse(listing_of(repeated({"EXIT"}, 4097)), std::nullopt);
    CHECK(found.code.pipes[Pipe::kControl] == 4097);
    CHECK(found.hot.error() == "the code has 4097 blocks; loops are looked for in 4096");
}

TEST_CASE("figures as text, and as JSON") {
    const HotLoop loop = *analyse(listing_of(kDecode), kAttention).hot;
    CHECK(code_text(loop.code) ==
          "17 instructions: 2 tensor (m16n8k16), 2 int, 1 convert, 2 shared, 3 global, 7 control; 16-byte accesses");
    CHECK(place_text(loop) ==
          "a warp's for a tile of 16 keys and 4 rows; 13 cycles of shared memory, 3072 bytes in flight, 1 copy not in "
          "the background, 1 wait for loads; at 0x20");
    const Json json = loop_json(loop);
    CHECK(json["pipes"]["global"] == 3);
    CHECK(json["tile"]["flight_bytes"] == 3072);
    CHECK(!json.contains("lines"));
    const std::vector<GpuShare> shares = {{"H100", {0.904, "memory"}}, {"H200", {0.6, "issue"}}};
    CHECK(shares_text(true, shares) ==
          "H100 0.90 of the memory's bandwidth, bound by memory; H200 0.60 of the memory's bandwidth, bound by issue");
    CHECK(shares_text(false, shares).starts_with("H100 0.90 of the arithmetic, bound by memory; "));
    CHECK(shares_json(shares)[1]["share"] == 0.6);
}

}  // namespace
}  // namespace kvjit::tool::sass
