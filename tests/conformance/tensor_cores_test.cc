// Random calls as random_test.cc has them, but of specs whose prefill tensor cores multiply, and of sequences with many
// new tokens: there each GPU's architecture has a variant of its own, and the sweep of all specs has few of any.
#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "conformance/call.h"
#include "conformance/covering.h"
#include "conformance/options.h"
#include "conformance/ragged.h"
#include "kvjit/kvjit.hpp"
#include "support/rng.h"

namespace kvjit::test {
namespace {

constexpr int kCases = 60;
const std::vector<std::int32_t> kHeadDims = {64, 128, 192, 256};

/// The case with a cache, or keys and values, of the queries' type; nullopt for other operators than attention.
std::optional<Case> prefilled(Case which, Rng& rng) {
    kvjit_spec& spec = which.spec;
    if (spec.op == KVJIT_OP_KEY_VALUE_CACHE) return std::nullopt;
    kvjit_spec plain;
    kvjit_spec_init(&plain);
    spec.head_dim = rng.pick(kHeadDims);
    spec.t1 = rng.chance(0.5) ? KVJIT_F16 : KVJIT_BF16;
    spec.t2 = spec.op == KVJIT_OP_MULTI_HEAD_CACHE_ATTENTION ? spec.t1 : plain.t2;
    spec.t3 = plain.t3;
    spec.quant_bit = plain.quant_bit;
    spec.quant_group = plain.quant_group;
    spec.attn_mask = plain.attn_mask;
    which.new_tokens = rng.chance(0.7) ? NewTokens::kTileEdge : NewTokens::kRagged;
    REQUIRE(kvjit_spec_for_op(&spec, static_cast<kvjit_op>(spec.op), &spec, nullptr) == KVJIT_OK);
    return which;
}

TEST_CASE("random calls that tensor cores prefill agree with the oracle") {
    if (!options().on_cuda()) return;  // the sweep of all specs has more of each CPU's variants
    REQUIRE(options().only < kCases);
    const std::vector<Levels> cases = covering_array(options().seed, options().strength, kCases);
    int calls = 0, judged = 0;
    for (int k = 0; k < kCases; ++k) {
        const std::uint64_t seed = options().seed * 2'000'003 + static_cast<std::uint64_t>(k);
        Rng rng(seed);
        const std::optional<Case> which = prefilled(case_of(cases[static_cast<std::size_t>(k)]), rng);
        if (!which) continue;
        ++calls;
        if (!options().takes(k)) continue;
        ++judged;
        const Call call = make_call(*which, seed, seed + 1);
        check_drawn(call, "-tc='random calls that*' --case " + std::to_string(k));
    }
    CHECK(calls > kCases / 3);
    CHECK_MESSAGE((judged > 0 || options().only < 0), "--case: tensor cores prefill no call of that number");
}

}  // namespace
}  // namespace kvjit::test
