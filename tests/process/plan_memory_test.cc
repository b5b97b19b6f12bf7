// What plan_create takes is bounded, whatever the lengths say: kvjit.h promises it.
#include <doctest/doctest.h>

#include <string>

#include "allocation_counter.h"
#include "call/arrays.h"
#include "kvjit/kvjit.hpp"

using namespace kvjit::test;

namespace {

constexpr std::int64_t kPromised = 64 << 20;

kvjit::Kernel kernel_of(const kvjit_spec& spec) {
    kvjit::EngineOptions options;
    options.cache_dir = "";
    const auto engine = kvjit::Engine::create(options);
    REQUIRE(engine);
    auto kernel = engine->kernel(spec);
    REQUIRE(kernel);
    REQUIRE(kernel->prepare(KVJIT_ALL_PROGRAMS));
    return *std::move(kernel);
}

/// One sequence of `tokens` new tokens and `keys` keys in the batch.
std::int64_t planned_bytes(const kvjit::Kernel& kernel, const kvjit_spec& spec, std::int64_t tokens,
                           std::int64_t keys) {
    const IndexArrays arrays({spec, {tokens}, {keys}, 8});
    kvjit::PlanOptions options;
    options.num_threads = 2;
    const std::int64_t before = allocated_bytes();
    const auto plan = kernel.plan(arrays.batch, options);
    const std::int64_t bytes = allocated_bytes() - before;
    REQUIRE(plan);
    return bytes - static_cast<std::int64_t>(plan->workspace_bytes());
}

}  // namespace

TEST_CASE("a plan of wrong lengths takes no more than is promised") {
    constexpr std::int64_t kMost = std::int64_t{1} << 30;
    for (const char* spec : {"op=MultiHeadAttention,head_dim=8,is_causal=0", "op=MultiHeadAttention,head_dim=64",
                             "op=MultiHeadCacheAttention,head_dim=64,cache_mode=offset",
                             "op=KeyValueCache,head_dim=512,cache_mode=offset", "op=Merge,head_dim=512"}) {
        CAPTURE(std::string(spec));
        const kvjit_spec parsed = parse_spec(spec);
        const kvjit::Kernel kernel = kernel_of(parsed);
        CHECK(planned_bytes(kernel, parsed, kMost, kMost) <= kPromised);
        CHECK(planned_bytes(kernel, parsed, 1, kMost) <= kPromised);
    }
}
