// Orders of moves: held against values that are moved all at once.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "blocks/order.h"

#include <doctest/doctest.h>

#include <map>

#include "random_cache.h"

namespace kvjit::test {
namespace {

using Ids = std::vector<std::int64_t>;

/// What blocks 0..size-1, which hold their own numbers, hold after the groups, which go in the order of `groups`.
Ids after(const rt::Order& order, const Ids& from, const Ids& to, std::int64_t size,
          const std::vector<std::size_t>& groups) {
    Ids blocks;
    for (std::int64_t i = 0; i < size; ++i) blocks.push_back(i);
    for (const std::size_t group : groups) {
        std::int64_t scratch = -1;
        const auto at = [&](rt::Place place) -> std::int64_t& {
            if (place.seat == rt::Seat::kScratch) return scratch;
            const Ids& ids = place.seat == rt::Seat::kFirst ? from : to;
            return blocks[static_cast<std::size_t>(ids[static_cast<std::size_t>(place.index)])];
        };
        for (const rt::Step& step : order.group(group)) at(step.to) = at(step.from);
    }
    return blocks;
}

Ids at_once(const Ids& from, const Ids& to, std::int64_t size) {
    Ids blocks;
    for (std::int64_t i = 0; i < size; ++i) blocks.push_back(i);
    for (std::size_t i = 0; i < to.size(); ++i) blocks[static_cast<std::size_t>(to[i])] = from[i];
    return blocks;
}

std::vector<std::size_t> groups_of(const rt::Order& order) {
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < order.groups(); ++i) all.push_back(i);
    return all;
}

TEST_CASE("a chain is moved from its end, and takes no scratch memory") {
    const Ids from{0, 1, 2}, to{1, 2, 3};
    const rt::Order order = rt::move_order(from, to);
    CHECK(order.groups() == 1);
    CHECK_FALSE(order.has_scratch());
    CHECK(after(order, from, to, 4, {0}) == Ids{0, 0, 1, 2});
}

TEST_CASE("a cycle takes one step more than it has moves") {
    const Ids from{4, 2, 7}, to{2, 7, 4};
    const rt::Order order = rt::move_order(from, to);
    CHECK(order.groups() == 1);
    CHECK(order.has_scratch());
    CHECK(order.steps() == 4);
    CHECK(after(order, from, to, 8, {0}) == at_once(from, to, 8));
}

TEST_CASE("what stays where it is takes no step") {
    const rt::Order order = rt::move_order(Ids{3, 1, 3}, Ids{3, 2, 0});
    CHECK(order.steps() == 2);
    CHECK(order.groups() == 2);
    CHECK(rt::move_order(Ids{5}, Ids{5}).groups() == 0);
    CHECK(rt::move_order({}, {}).groups() == 0);
}

TEST_CASE("moves that read one block before it is overwritten are in one group, also where they hang on a cycle") {
    const Ids from{0, 1, 1, 0, 5}, to{1, 0, 2, 3, 6};
    const rt::Order order = rt::move_order(from, to);
    CHECK(order.groups() == 2);
    CHECK(after(order, from, to, 7, {1, 0}) == at_once(from, to, 7));
}

TEST_CASE("any moves, with groups in any order, are as if all at once, in as few steps") {
    each_seed(20000, [](std::uint64_t seed) {
        INFO("KVJIT_TEST_SEED=", seed, " blocks_test -tc='any moves*'");
        Rng random(seed);
        const std::int64_t size = random.between(1, 12), count = random.between(0, size);
        Ids from, to;
        for (std::int64_t i = 0; i < size; ++i) to.push_back(i);
        random.shuffle(to);
        to.resize(static_cast<std::size_t>(count));
        for (std::int64_t i = 0; i < count; ++i) from.push_back(random.below(size));
        if (random.chance(0.5)) {
            from = to;
            random.shuffle(from);
        }
        const rt::Order order = rt::move_order(from, to);
        std::vector<std::size_t> groups = groups_of(order);
        random.shuffle(groups);
        REQUIRE(after(order, from, to, size, groups) == at_once(from, to, size));
        REQUIRE(order.steps() <= to.size() + order.groups());
    });
}

}  // namespace
}  // namespace kvjit::test
