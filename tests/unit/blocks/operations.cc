#include "operations.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace kvjit::test {
namespace {

/// 0..count-1 in any order.
std::vector<std::int64_t> shuffled(std::int64_t count, Rng& random) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(count));
    std::iota(all.begin(), all.end(), 0);
    random.shuffle(all);
    return all;
}

std::vector<std::int64_t> some(const std::vector<std::int64_t>& all, std::int64_t begin, std::int64_t count) {
    return {all.begin() + begin, all.begin() + begin + count};
}

struct Outcome {
    std::vector<Bytes> first, second;
    bool operator==(const Outcome& other) const = default;
};

/// Runs `call`, which must succeed, and holds what it does to what `expected` does to the models.
void compare(CacheModel& first, CacheModel& second, const std::function<Result<void>()>& call,
             const std::function<void()>& expected) {
    const Outcome before{first.memory(), second.memory()};
    expected();
    const Outcome wanted{first.memory(), second.memory()};
    first.set_memory(before.first);
    second.set_memory(before.second);
    const Result<void> done = call();
    const std::string message = done ? "" : done.error().message();
    REQUIRE_MESSAGE(done.has_value(), message);
    CHECK((Outcome{first.memory(), second.memory()} == wanted));
}

void check_copy(CacheModel& from, CacheModel& to, const How& how, Rng& random) {
    const std::int64_t count = random.between(0, to.id_count());
    const auto targets = some(shuffled(to.id_count(), random), 0, count);
    std::vector<std::int64_t> sources;
    while (std::ssize(sources) < count) sources.push_back(random.below(from.id_count()));
    const auto from_ids = from.ids(sources), to_ids = to.ids(targets);
    compare(
        from, to,
        [&] {
            return copy_blocks(from.blocks(), to.blocks(), from_ids.data(), to_ids.data(), count, how.of(from, to));
        },
        [&] {
            for (std::size_t i = 0; i < targets.size(); ++i) to.set_content(targets[i], from.content(sources[i]));
        });
}

/// Within one cache sources are no destinations.
void check_copy_within(CacheModel& cache, const How& how, Rng& random) {
    const auto all = shuffled(cache.id_count(), random);
    const std::int64_t count = random.between(0, cache.id_count() - 1);
    const auto targets = some(all, 0, count);
    std::vector<std::int64_t> sources;
    while (std::ssize(sources) < count) {
        sources.push_back(all[static_cast<std::size_t>(random.between(count, cache.id_count() - 1))]);
    }
    const auto from_ids = cache.ids(sources), to_ids = cache.ids(targets);
    compare(
        cache, cache,
        [&] {
            return copy_blocks(cache.blocks(), cache.blocks(), from_ids.data(), to_ids.data(), count,
                               how.of(cache, cache));
        },
        [&] {
            for (std::size_t i = 0; i < targets.size(); ++i) cache.set_content(targets[i], cache.content(sources[i]));
        });
}

/// Chains, cycles, several destinations of one source, and what stays where it is.
void check_move(CacheModel& cache, const How& how, Rng& random) {
    const std::int64_t count = random.between(0, cache.id_count());
    const auto targets = some(shuffled(cache.id_count(), random), 0, count);
    const auto other = shuffled(cache.id_count(), random);
    std::vector<std::int64_t> sources;
    for (std::int64_t i = 0; i < count; ++i) {
        sources.push_back(random.chance(0.8) ? other[static_cast<std::size_t>(i)] : random.below(cache.id_count()));
    }
    const auto from_ids = cache.ids(sources), to_ids = cache.ids(targets);
    compare(
        cache, cache,
        [&] { return move_blocks(cache.blocks(), from_ids.data(), to_ids.data(), count, how.of(cache, cache)); },
        [&] {
            std::vector<Bytes> were;
            for (const std::int64_t i : sources) were.push_back(cache.content(i));
            for (std::size_t i = 0; i < targets.size(); ++i) cache.set_content(targets[i], were[i]);
        });
}

void check_swap(CacheModel& a, CacheModel& b, const How& how, const std::vector<std::int64_t>& left,
                const std::vector<std::int64_t>& right) {
    const auto a_ids = a.ids(left), b_ids = b.ids(right);
    compare(
        a, b,
        [&] { return swap_blocks(a.blocks(), b.blocks(), a_ids.data(), b_ids.data(), std::ssize(left), how.of(a, b)); },
        [&] {
            for (std::size_t i = 0; i < left.size(); ++i) {
                const Bytes was = a.content(left[i]);
                a.set_content(left[i], b.content(right[i]));
                b.set_content(right[i], was);
            }
        });
}

void check_zero(CacheModel& cache, const How& how, Rng& random) {
    const std::int64_t count = random.between(0, cache.id_count());
    const auto which = some(shuffled(cache.id_count(), random), 0, count);
    const auto ids = cache.ids(which);
    compare(
        cache, cache, [&] { return zero_blocks(cache.blocks(), ids.data(), count, how.of(cache, cache)); },
        [&] {
            for (const std::int64_t i : which) cache.set_content(i, Bytes(cache.content(i).size(), 0));
        });
}

}  // namespace

const BlocksOptions& How::of(const CacheModel& a, const CacheModel& b) const {
    return a.lies_in() == KVJIT_MEMORY_HOST && b.lies_in() == KVJIT_MEMORY_HOST ? host : cuda;
}

void check_operations(CacheModel& first, CacheModel& second, const How& how, Rng& random) {
    check_copy(first, second, how, random);
    check_copy_within(first, how, random);
    check_move(second, how, random);
    const std::int64_t count = random.between(0, std::min(first.id_count(), second.id_count()));
    check_swap(first, second, how, some(shuffled(first.id_count(), random), 0, count),
               some(shuffled(second.id_count(), random), 0, count));
    const auto all = shuffled(first.id_count(), random);
    const std::int64_t half = first.id_count() / 2;
    check_swap(first, first, how, some(all, 0, half), some(all, half, half));
    check_zero(first, how, random);
}

}  // namespace kvjit::test
