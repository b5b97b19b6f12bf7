// The rules of a batch on lengths that wrapped: a lane of the check may see starts so wrong that no number holds what
// lies between them, of which another lane has to tell. Nothing overflows: a sanitizer's build of this test ends where
// something does.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <limits>

#include "common/batch_rules.h"

using namespace kvjit;

namespace {

constexpr std::int64_t kFar = std::int64_t{1} << 62;
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

using Starts = std::array<std::int64_t, 3>;

abi::Indices indices(const Starts& starts) {
    return {starts.data(), 0};
}

}  // namespace

TEST_CASE("new tokens whose number wrapped") {
    const Starts seqstarts = {0, -kFar, kFar}, kvstarts = {0, 5, 10}, start_pos = {0, 7, 0};
    CheckedBatch batch{};
    batch.batch_size = 2;
    batch.seqstarts = indices(seqstarts);
    batch.keys.starts = indices(kvstarts);
    batch.start_pos = indices(start_pos);
    batch.stores = true;
    Finding found{};
    REQUIRE(length(batch.seqstarts, 1) == kLeast);
    const CheckedSequence wrong = checked_sequence(batch, 1);
    CHECK(tokens_hold(found, batch, wrong));  // another lane sees that the array doesn't begin at 0
    CHECK(!position_holds(found, batch, wrong));
    CHECK(found.rule == Rule::kStart);
    CHECK(found.value == 7);
}

TEST_CASE("rows of a table whose length wrapped") {
    const Starts kvstarts = {0, 5, 10}, rowstarts = {0, kLeast, kFar};
    CheckedBatch batch{};
    batch.batch_size = 3;
    batch.seqstarts = batch.keys.starts = indices(kvstarts);
    batch.table.rowstarts = indices(rowstarts);
    batch.table_entries = 100;
    Finding found{};
    REQUIRE(length(batch.table.rowstarts, 1) < 0);
    CHECK(row_begin_holds(found, batch, 1, starts_of(batch.table.rowstarts, 1)));
    CHECK(!row_holds(found, batch, {16, Entries::kTokens}, checked_sequence(batch, 1)));
    CHECK(found.rule == Rule::kRowLength);
    CHECK(found.value == 5);
}
