// Two new tokens with one slot are found wherever the two are in a batch of many sequences, some with many new tokens.
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

TEST_CASE("of many new tokens any two that share a slot are found") {
    CHECK(ManyCall(1).run().has_value());
    Rng rng(2);
    for (int round = 0; round < 60; ++round) {
        ManyCall call(3);
        const std::int64_t count = call.seqstarts.back();
        const std::int64_t first = rng.below(count), second = (first + 1 + rng.below(count - 1)) % count;
        CAPTURE(first);
        CAPTURE(second);
        call.slot_of_new(second) = call.slot_of_new(first);
        const std::vector<std::byte> before = call.snapshot();
        const Result<void> ran = call.run();
        REQUIRE(!ran.has_value());
        CHECK(ran.error().status() == KVJIT_BAD_INDEX);
        CHECK(std::string(ran.error().argument()) == "cachestarts");
        CHECK(ran.error().value() == call.slot_of_new(first));
        CHECK(call.snapshot() == before);
    }
}

}  // namespace
}  // namespace kvjit::test
