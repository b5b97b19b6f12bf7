// A model's step: layers that alternate between a window and all keys, each with sinks of its own, over one cache. Two
// plans serve them all.
#include <doctest/doctest.h>

#include <vector>

#include "conformance/judge.h"
#include "conformance/ragged.h"
#include "conformance/run_call.h"
#include "support/rng.h"

namespace kvjit::test {
namespace {

constexpr std::int64_t kLayers = 4;
constexpr std::int64_t kWindow = 127;

const std::string kFull =
    "op=MultiHeadCacheAttention,head_dim=64,group=8,t1=f16,cache_mode=page_table,page_size=16,layout=L2HTD,"
    "has_sinks=1";
const std::string kWindowed = kFull + ",has_window=1";

/// The call becomes that of a layer, which changes its problem and the sinks in memory.
void turn_to_layer(Call& call, std::int64_t layer, Rng& rng) {
    const bool windowed = layer % 2 == 0;
    call.which.spec = call.problem.spec = spec_of(windowed ? kWindowed : kFull);
    call.problem.window_left = windowed ? kWindow : -1;
    call.problem.layer = layer;
    for (std::int64_t h = 0; h < call.problem.num_heads; ++h) {
        call.problem.sinks[static_cast<std::size_t>(h)] = static_cast<float>(2 * rng.normal());
        call.sinks.set(h, static_cast<double>(call.problem.sinks[static_cast<std::size_t>(h)]));
    }
}

/// All layers have the past that one of them was given.
void share_past(Call& call) {
    const Strided& cache = call.cache[0].strided();  // L2HTD
    const std::int64_t from = call.problem.layer * cache.strides[0];
    for (std::int64_t layer = 0; layer < kLayers; ++layer) {
        for (std::int64_t kv = 0; kv < 2; ++kv) {
            for (std::int64_t h = 0; h < call.problem.num_kv_heads; ++h) {
                for (std::int64_t t = 0; t < call.max_tokens; ++t) {
                    const std::int64_t row = kv * cache.strides[1] + h * cache.strides[2] + t * cache.strides[3];
                    for (std::int64_t d = 0; d < call.problem.spec.head_dim; ++d) {
                        const double element = read_element(cache.data, cache.dtype, from + row + d);
                        call.cache[0].set(layer * cache.strides[0] + row + d, element);
                    }
                }
            }
        }
    }
}

/// Of as many threads, or splits, as the plan chooses.
BoundPlan plan_of(const Call& call) {
    return {bind(call), {.threads = 0, .split_keys = 0}};
}

}  // namespace

TEST_CASE("a step of a model whose layers alternate between a window and all keys, with sinks of their own") {
    for (const NewTokens tokens : {NewTokens::kOne, NewTokens::kRagged}) {
        Case which = ragged(kFull);
        which.num_layers = kLayers;
        which.new_tokens = tokens;
        which.past_tokens = PastTokens::kChunkEdge;
        Call call = make_call(which, 91, 92);
        share_past(call);
        Rng rng(93);
        turn_to_layer(call, 0, rng);
        const BoundPlan windowed = plan_of(call);
        turn_to_layer(call, 1, rng);
        const BoundPlan full = plan_of(call);
        for (std::int64_t layer = 0; layer < kLayers; ++layer) {
            CAPTURE(layer);
            turn_to_layer(call, layer, rng);
            call.remember();  // what earlier layers have stored is there before the call
            REQUIRE((layer % 2 == 0 ? windowed : full).run(bind(call)) == "");
            CHECK(judge(call) == "");
        }
    }
}

}  // namespace kvjit::test
