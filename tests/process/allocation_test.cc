// kvjit_run allocates nothing, on no thread, not even the first time; nor do tables of a step that are made of others.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "allocation_counter.h"
#include "call.h"
#include "kvjit/interop/ksana.h"

using namespace kvjit::test;

namespace {

const kvjit::Engine& engine() {
    static const kvjit::Engine engine = [] {
        kvjit::EngineOptions options;
        options.cache_dir = "";
        return *kvjit::Engine::create(options);
    }();
    return engine;
}

kvjit::Plan plan_for(const ApiCall& call) {
    const auto kernel = engine().kernel(call.spec);
    REQUIRE(kernel);
    kvjit::PlanOptions options;
    options.num_threads = 4;
    auto plan = kernel->plan(call.batch, options);
    REQUIRE(plan);
    return std::move(*plan);
}

/// What the runs of a plan allocate. Nothing else happens between the two looks at the counter.
std::int64_t allocated_by_runs(kvjit::Plan& plan, const kvjit_tensors& tensors) {
    bool right = true;
    const std::int64_t before = allocations();
    for (int i = 0; i < 10; ++i) right &= plan.run(tensors).has_value();
    const std::int64_t after = allocations();
    REQUIRE(right);
    return after - before;
}

/// Merge items of the plan: not 0 where keys are split.
bool merges(const kvjit::Plan& plan) {
    return plan.describe().find("merge items: 0\n") == std::string::npos;
}

}  // namespace

TEST_CASE("the counter counts") {
    const std::int64_t before = allocations();
    const std::vector<int> memory(1000);
    CHECK(memory.size() == 1000);
    CHECK(allocations() > before);
}

TEST_CASE("decoding one sequence whose keys are split") {
    const ApiCall call = make_call(1, 1, 8000);
    kvjit::Plan plan = plan_for(call);
    CHECK(merges(plan));
    CHECK(allocated_by_runs(plan, call.tensors) == 0);
}

TEST_CASE("decoding and prefilling several sequences") {
    for (const std::int64_t tokens : {1, 100}) {
        CAPTURE(tokens);
        const ApiCall call = make_call(5, tokens, 700);
        kvjit::Plan plan = plan_for(call);
        CHECK(allocated_by_runs(plan, call.tensors) == 0);
    }
}

TEST_CASE("storing and loading") {
    CallShape shape = even_shape(kCallSpec, 3, 7, 300);
    REQUIRE(kvjit_spec_for_op(&shape.spec, KVJIT_OP_KEY_VALUE_CACHE, &shape.spec, nullptr) == KVJIT_OK);
    const ApiCall call(shape);
    kvjit::Plan plan = plan_for(call);
    CHECK(allocated_by_runs(plan, call.tensors) == 0);
}

TEST_CASE("attention over packed keys and values, with lse") {
    const std::string spec = "op=MultiHeadAttention,head_dim=64,group=4,t1=f32,is_causal=1";
    const ApiCall call({parse_spec(spec), {10, 14}, {10, 14}});
    kvjit::Plan plan = plan_for(call);
    CHECK(allocated_by_runs(plan, call.tensors) == 0);
}

TEST_CASE("merging partial outputs") {
    const ApiCall call(even_shape("op=Merge,head_dim=64,t1=f32", 1, 24, 24));
    kvjit::Plan plan = plan_for(call);
    CHECK(allocated_by_runs(plan, call.tensors) == 0);
}

TEST_CASE("tables of a whole step between KsanaLLM's blocks, their addresses and ATB's ids") {
    using namespace kvjit::interop;
    constexpr std::int64_t kLayers = 4, kRowsOfTable = 64, kColumns = 32;
    const auto spec = kvjit::KernelSpec::parse("op=KeyValueCache,head_dim=64,t1=f32,layout=ksana,page_size=4");
    REQUIRE(spec);
    auto pool = KsanaPool::allocate(*spec, {kLayers, 2}, kRowsOfTable * kColumns);
    REQUIRE(pool);
    std::vector<std::int64_t> blocks(kRowsOfTable * kColumns), addresses(blocks.size());
    std::vector<std::int32_t> ids(kLayers * blocks.size());
    const KsanaTable<std::int64_t> from(blocks.data(), kRowsOfTable, kColumns);
    const KsanaTable<std::int64_t> pointers(addresses.data(), kRowsOfTable, kColumns);
    bool right = true;
    const std::int64_t before = allocations();
    right &= pool->take(blocks.data(), kRowsOfTable * kColumns).has_value();
    for (std::int64_t layer = 0; layer < kLayers; ++layer) {
        const KsanaTable<std::int32_t> to(ids.data() + layer * kRowsOfTable * kColumns, kRowsOfTable, kColumns);
        right &= to_atb(*pool, from, layer, to).has_value() && from_atb(*pool, to, layer, from).has_value();
    }
    right &= to_pointers(*pool, from, pointers).has_value() && from_pointers(*pool, pointers, from).has_value();
    right &= pool->release(blocks.data(), kRowsOfTable * kColumns).has_value();
    const std::int64_t after = allocations();
    CHECK(right);
    CHECK(after == before);
}
