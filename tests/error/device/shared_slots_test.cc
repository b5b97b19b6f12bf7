// Entries out of range, and two new tokens with one slot, are found wherever they are in a batch of many sequences,
// some with many new tokens.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "device_plan.h"

namespace kvjit::test {
namespace {

/// 75 sequences with 3 keys each before their new tokens, and a slot for each token.
CallShape many_sequences() {
    CallShape shape{parse_spec("op=KeyValueCache,head_dim=16,t1=f32,cache_mode=token_table,layout=TL2HD"), {}, {}, 1};
    for (std::int64_t b = 0; b < 75; ++b) {
        shape.tokens.push_back(b % 20 == 3 ? 40 : b % 7 == 5 ? 0 : 1);
        shape.keys.push_back(3 + shape.tokens.back());
    }
    return shape;
}

struct ManyCall : ApiCall {
    explicit ManyCall(std::uint64_t seed) : ApiCall(many_sequences()) {
        Rng rng(seed);
        place_tokens(&rng);
        tensors.key = tensors.value = Tensor();
    }

    /// The table's entry of the i-th new token of the batch.
    std::int64_t& slot_of_new(std::int64_t i) {
        const auto after = std::upper_bound(seqstarts.begin(), seqstarts.end(), i);
        const auto b = static_cast<std::size_t>(after - seqstarts.begin() - 1);
        return table[static_cast<std::size_t>(kvstarts[b] + start_pos[b] + i - seqstarts[b])];
    }

    Result<void> run() const {
        Plan plan = device_plan(*this);
        if (auto ran = plan.run(tensors); !ran) return ran;
        return plan.synchronize();
    }
};

/// The call, whose array `argument` has the value `value` somewhere, is refused for that, and changes nothing.
void expect_found(ManyCall& call, const std::string& argument, std::int64_t value) {
    const std::vector<std::byte> before = call.snapshot();
    const Result<void> ran = call.run();
    REQUIRE(!ran.has_value());
    CHECK(ran.error().status() == KVJIT_BAD_INDEX);
    CHECK(std::string(ran.error().argument()) == argument);
    CHECK(ran.error().value() == value);
    CHECK(call.snapshot() == before);
}

struct Pair {
    std::int64_t first, second;
};
Pair two_tokens(Rng& rng, std::int64_t count) {
    const std::int64_t first = rng.below(count);
    return {first, (first + 1 + rng.below(count - 1)) % count};
}

TEST_CASE("of many new tokens any two that share a slot are found") {
    CHECK(ManyCall(1).run().has_value());
    Rng rng(2);
    for (int round = 0; round < 60; ++round) {
        ManyCall call(3);
        const auto [first, second] = two_tokens(rng, call.seqstarts.back());
        CAPTURE(first);
        CAPTURE(second);
        call.slot_of_new(second) = call.slot_of_new(first);
        expect_found(call, "cachestarts", call.slot_of_new(first));
    }
}

TEST_CASE("of many tokens any whose entry is out of range is found") {
    const ManyCall sound(4);
    for (std::size_t at = 0; at < sound.table.size(); at += 1 + at % 3) {
        ManyCall call(4);
        CAPTURE(at);
        call.table[at] = call.batch.max_tokens;
        expect_found(call, "cachestarts", call.batch.max_tokens);
    }
}

TEST_CASE("of many chosen slots any two that are the same, and any out of range, are found") {
    Rng rng(5);
    for (int round = 0; round < 60; ++round) {
        ManyCall call(6);
        const std::int64_t count = call.seqstarts.back();
        Numbers slots;
        for (std::int64_t i = 0; i < count; ++i) slots.push_back(call.slot_of_new(i));
        call.batch.store_slots = Tensor(slots.data(), KVJIT_I64, {count});
        const auto [first, second] = two_tokens(rng, count);
        CAPTURE(first);
        CAPTURE(second);
        if (round == 0) CHECK(call.run().has_value());
        std::int64_t& changed = slots[static_cast<std::size_t>(second)];
        changed = round % 4 == 3 ? call.batch.max_tokens : slots[static_cast<std::size_t>(first)];
        expect_found(call, "store_slots", changed);
    }
}

}  // namespace
}  // namespace kvjit::test
