// Random calls as random_test.cc has them, but of bfloat16, with few new tokens, and with caches of which a head's
// tokens lie together: what AMX decodes. The sweep of all specs has few of these.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "conformance/call.h"
#include "conformance/covering.h"
#include "conformance/options.h"
#include "conformance/ragged.h"
#include "conformance/run_call.h"
#include "kvjit/kvjit.hpp"
#include "support/rng.h"

namespace kvjit::test {
namespace {

constexpr int kCases = 90;
/// Of decode's tiles: a part of one, one, and several for one token.
const std::vector<std::int32_t> kGroups = {1, 2, 3, 4, 7, 8, 16, 17, 40};
/// Of its columns of 32 elements: some, four, which are summed together, and more.
const std::vector<std::int32_t> kHeadDims = {32, 64, 96, 128, 160, 256};

/// Changes places of H and T where T comes later, so that a head's tokens are neighbours.
void put_heads_outside(std::span<char> layout) {
    const auto head = std::ranges::find(layout, 'H'), token = std::ranges::find(layout, 'T');
    if (head != layout.end() && token != layout.end() && head > token) std::iter_swap(head, token);
}

Case decoded(Case which, Rng& rng) {
    kvjit_spec& spec = which.spec;
    kvjit_spec plain;
    kvjit_spec_init(&plain);
    spec.t1 = spec.t2 = KVJIT_BF16;
    spec.t3 = plain.t3;
    spec.quant_bit = plain.quant_bit;
    spec.quant_group = plain.quant_group;
    spec.group = rng.pick(kGroups);
    spec.head_dim = rng.pick(kHeadDims);
    put_heads_outside(spec.layout);
    put_heads_outside(spec.value_layout);
    // Ragged: up to 11 tokens, and with them prefill.
    which.new_tokens =
        rng.pick<NewTokens>({NewTokens::kOne, NewTokens::kNoneOrOne, NewTokens::kFew, NewTokens::kRagged});
    REQUIRE(kvjit_spec_for_op(&spec, static_cast<kvjit_op>(spec.op), &spec, nullptr) == KVJIT_OK);
    return which;
}

/// Whether a call's decode is by AMX, or by what stands for it.
bool is_decoded_by_amx(const Engine& engine, const Call& call) {
    const auto kernel = engine.kernel(call.which.spec, chosen_target());
    return kernel->images(KVJIT_PROGRAM_DECODE)->front().variant == "amx";
}

TEST_CASE("few rows of bfloat16 agree with the oracle") {
    if (options().on_cuda()) return;  // decode of bfloat16 is there as that of float16
    const std::vector<Levels> cases = covering_array(options().seed, options().strength, kCases);
    const auto engine = Engine::create();
    int calls = 0, by_amx = 0;
    for (int k = 0; k < kCases; ++k) {
        const Case drawn = case_of(cases[static_cast<std::size_t>(k)]);
        if (drawn.spec.op != KVJIT_OP_MULTI_HEAD_CACHE_ATTENTION) continue;
        ++calls;
        const std::uint64_t seed = options().seed * 3'000'017 + static_cast<std::uint64_t>(k);
        Rng rng(seed);
        const Call call = make_call(decoded(drawn, rng), seed, seed + 1);
        by_amx += is_decoded_by_amx(*engine, call) ? 1 : 0;
        check_drawn(call, "'-sf=*few_rows*'  # case " + std::to_string(k));
    }
    CHECK(calls > kCases / 4);
    CHECK(by_amx == (multiplies_tiles() ? calls : 0));
}

}  // namespace
}  // namespace kvjit::test
