// Occupancy, held to figures of NVIDIA's occupancy calculator worked by hand.
#include "inspect/occupancy.h"

#include <doctest/doctest.h>

#include "generator/architecture.h"

namespace kvjit::tool {
namespace {

void check(const std::string& architecture, const BlockNeeds& needs, int blocks, int warps, const std::string& limit) {
    const auto found = occupancy(architecture, needs);
    REQUIRE(found.has_value());
    CHECK(found->blocks == blocks);
    CHECK(found->warps == warps);
    CHECK(found->limit == limit);
}

TEST_CASE("what a block takes most of decides") {
    check("sm_80", {256, 32, 0}, 8, 64, "registers");           // 64 warps take all: registers and threads alike
    check("sm_80", {256, 24, 0}, 8, 64, "threads");             // 2048 threads
    check("sm_89", {256, 24, 0}, 6, 48, "threads");             // 1536
    check("sm_90a", {256, 122, 0}, 2, 16, "registers");         // 4096 a warp: 4 warps a part
    check("sm_90a", {128, 183, 113680}, 2, 8, "registers");     // 5888 a warp: 2 warps a part
    check("sm_90a", {128, 64, 113680}, 2, 8, "shared memory");  // 228 KiB / (112 KiB + 1 KiB)
    check("sm_86", {32, 16, 0}, 16, 16, "blocks");
    check("sm_120", {128, 255, 99 * 1024}, 1, 4, "shared memory");
}

TEST_CASE("a block that doesn't fit has none") {
    const auto found = occupancy("sm_86", {128, 32, 200 * 1024});
    REQUIRE(found.has_value());
    CHECK(found->blocks == 0);
}

TEST_CASE("without limits or needs there is no figure") {
    CHECK(!occupancy("sm_75", {128, 32, 0}));
    CHECK(!occupancy("x86-64", {128, 32, 0}));
    CHECK(!occupancy("sm_80", {0, 32, 0}));
    CHECK(!occupancy("sm_80", {128, -1, 0}));
}

}  // namespace
}  // namespace kvjit::tool
