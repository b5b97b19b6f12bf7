// So many sequences that a plan takes larger tiles: which rows share a tile must not change a bit.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "conformance/options.h"
#include "conformance/run_call.h"
#include "kvjit/kvjit.hpp"
#include "support/rng.h"

namespace kvjit::test {
namespace {

constexpr std::int64_t kDim = 8, kHeads = 31, kTokens = 40;

/// A causal sequence of kTokens tokens, and after it `others` of one token, one kv head. Returns the outputs of the
/// first.
std::vector<float> outputs(std::int64_t others) {
    std::vector<std::int64_t> starts(static_cast<std::size_t>(others) + 2);
    std::iota(starts.begin() + 1, starts.end(), kTokens);
    const std::int64_t tokens = starts.back();
    std::vector<float> query(static_cast<std::size_t>(tokens * kHeads * kDim));
    std::vector<float> key(static_cast<std::size_t>(tokens * kDim)), value(key.size()), output(query.size());
    std::uint64_t seed = 20261123;
    for (auto* numbers : {&key, &value, &query}) {  // of the first sequence the same, however many others there are
        Rng rng(seed++);
        for (float& number : *numbers) number = static_cast<float>(rng.normal());
    }
    const auto engine = Engine::create().value();
    const auto spec = KernelSpec::parse("op=MultiHeadAttention,head_dim=8,group=31,t1=f32,is_causal=1").value();
    const auto kernel = engine.kernel(spec, chosen_target()).value();
    Batch batch;
    batch.num_heads = kHeads;
    batch.softmax_scale = 0.1F;
    batch.set_seqstarts(starts).set_kvstarts(starts);
    auto plan = kernel.plan(batch).value();
    Tensors tensors;
    tensors.query = Tensor(query, {tokens, kHeads, kDim});
    tensors.key = Tensor(key, {tokens, std::int64_t{1}, kDim});
    tensors.value = Tensor(value, {tokens, std::int64_t{1}, kDim});
    tensors.attn_output = Tensor(output, {tokens, kHeads, kDim});
    plan.run(tensors).value();
    output.resize(static_cast<std::size_t>(kTokens * kHeads * kDim));
    return output;
}

TEST_CASE("a sequence among 33000 others gives the bits that it gives alone") {
    if (options().on_cuda()) return;  // a GPU's tiles don't depend on how many sequences there are
    const std::vector<float> alone = outputs(0), among = outputs(33000);
    CHECK(std::memcmp(alone.data(), among.data(), alone.size() * sizeof(float)) == 0);
}

}  // namespace
}  // namespace kvjit::test
