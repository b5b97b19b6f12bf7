// Two new tokens with one slot are found wherever the two are in a batch of many sequences, some with many new tokens.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "kvjit/kvjit.hpp"
#include "support/rng.h"

namespace kvjit::test {
namespace {

constexpr std::int64_t kHeads = 1, kDim = 16, kSequences = 75, kPast = 3;

/// Sequences, with a slot for each token, no two on one.
struct Call {
    std::vector<std::int64_t> seqstarts = {0}, kvstarts = {0}, start_pos, table;
    std::vector<float> tokens, cache;

    explicit Call(std::uint64_t seed) {
        Rng rng(seed);
        for (std::int64_t b = 0; b < kSequences; ++b) {
            const std::int64_t added = b % 20 == 3 ? 40 : b % 7 == 5 ? 0 : 1;
            seqstarts.push_back(seqstarts.back() + added);
            kvstarts.push_back(kvstarts.back() + kPast + added);
            start_pos.push_back(kPast);
        }
        for (std::int64_t t = 0; t < kvstarts.back(); ++t) table.push_back(t);
        rng.shuffle(table);
        tokens.resize(static_cast<std::size_t>(seqstarts.back() * kHeads * kDim + 4), 1.0f);
        cache.resize(table.size() * 2 * kHeads * kDim + 4, 7.0f);
    }

    /// The table's entry of the i-th new token of the batch.
    std::int64_t& slot_of_new(std::int64_t i) {
        const auto after = std::upper_bound(seqstarts.begin(), seqstarts.end(), i);
        const auto b = static_cast<std::size_t>(after - seqstarts.begin() - 1);
        return table[static_cast<std::size_t>(kvstarts[b] + start_pos[b] + i - seqstarts[b])];
    }

    Batch batch() const {
        Batch batch;
        batch.batch_size = kSequences;
        batch.num_kv_heads = kHeads;
        batch.max_tokens = kvstarts.back();
        batch.seqstarts = seqstarts.data();
        batch.kvstarts = kvstarts.data();
        batch.start_pos = start_pos.data();
        batch.cachestarts = Tensor(table.data(), KVJIT_I64, {kvstarts.back()});
        return batch;
    }

    Result<void> run() {
        static const Engine engine = *Engine::create();
        const auto spec = KernelSpec::parse("op=KeyValueCache,head_dim=16,t1=f32,cache_mode=token_table,layout=TL2HD");
        auto plan = engine.kernel(*spec, *Target::cuda_emulated())->plan(batch());
        if (!plan) return plan.error();
        Tensors tensors;
        tensors.current_key = Tensor(aligned(tokens), KVJIT_F32, {seqstarts.back(), kHeads, kDim});
        tensors.current_value = tensors.current_key;
        tensors.cache = Tensor(aligned(cache), KVJIT_F32, {kvstarts.back(), 1, 2, kHeads, kDim});
        if (auto ran = plan->run(tensors); !ran) return ran;
        return plan->synchronize();
    }

private:
    static float* aligned(std::vector<float>& memory) {
        return reinterpret_cast<float*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 15) / 16 * 16);
    }
};

TEST_CASE("of many new tokens any two that share a slot are found") {
    CHECK(Call(1).run().has_value());
    Rng rng(2);
    for (int round = 0; round < 60; ++round) {
        Call call(3);
        const std::int64_t count = call.seqstarts.back();
        const std::int64_t first = rng.below(count), second = (first + 1 + rng.below(count - 1)) % count;
        CAPTURE(first);
        CAPTURE(second);
        call.slot_of_new(second) = call.slot_of_new(first);
        const std::vector<float> before = call.cache;
        const Result<void> ran = call.run();
        REQUIRE(!ran.has_value());
        CHECK(ran.error().status() == KVJIT_BAD_INDEX);
        CHECK(std::string(ran.error().argument()) == "cachestarts");
        CHECK(ran.error().value() == call.slot_of_new(first));
        CHECK(call.cache == before);
    }
}

}  // namespace
}  // namespace kvjit::test
