// How many kv heads of a token a warp of store and load takes.
#include <doctest/doctest.h>

#include <cstdint>

#include "check/arithmetic.h"
#include "cuda/head_split.h"

namespace kvjit::rt {
namespace {

constexpr std::int64_t kMultiprocessors = 132;
constexpr std::int64_t kWanted = kMultiprocessors * 64;

TEST_CASE("warps have all heads, each at least one; several only where each multiprocessor has all its warps") {
    for (std::int64_t tokens = 0; tokens < 1000000; tokens += 1 + tokens / 5) {
        for (std::int64_t heads = 1; heads < 300; heads += 1 + heads / 9) {
            CAPTURE(tokens);
            CAPTURE(heads);
            const abi::HeadSplit split = split_heads(tokens, heads, kMultiprocessors);
            REQUIRE(split.warps >= 1);
            CHECK(split.warps * split.heads_of_warp >= heads);
            CHECK((split.warps - 1) * split.heads_of_warp < heads);
            if (split.heads_of_warp > 1) CHECK(2 * tokens * split.warps >= kWanted);
        }
    }
}

TEST_CASE("steps of decode have a warp for each head, long prompts one for all") {
    CHECK(split_heads(1, 8, kMultiprocessors).heads_of_warp == 1);
    CHECK(split_heads(256, 8, kMultiprocessors).heads_of_warp == 1);
    CHECK(split_heads(1056, 8, kMultiprocessors).heads_of_warp == 2);
    CHECK(split_heads(2112, 8, kMultiprocessors).heads_of_warp == 4);
    CHECK(split_heads(4224, 8, kMultiprocessors).heads_of_warp == 8);
    CHECK(split_heads(100000, 8, kMultiprocessors).warps == 1);
    // Three warps of three heads, not of four, four and one.
    CHECK(split_heads(2112, 9, kMultiprocessors).heads_of_warp == 3);
}

TEST_CASE("no number of tokens is too large, and none of heads too small") {
    const abi::HeadSplit huge = split_heads(kMaxInt64, 0x7fffffff, kMultiprocessors);
    CHECK(huge.warps == 1);
    CHECK(huge.heads_of_warp == 0x7fffffff);
    CHECK(split_heads(0, 8, kMultiprocessors).heads_of_warp == 1);
    CHECK(split_heads(8, 0, kMultiprocessors).warps == 1);
}

}  // namespace
}  // namespace kvjit::rt
