// Plans that store nothing: faults of what is read are found as ever, and no others.
#include "device_call.h"

namespace kvjit::test {
namespace {

/// What sequences share, a load reads once for each.
bool loads_slots(const Call& call) {
    for (std::size_t row = 0; row < static_cast<std::size_t>(call.kvstarts.back() * kHeads); ++row) {
        if (call.outputs[row].elements[0] != 7) return false;
    }
    return true;
}

TEST_CASE("a plan that stores nothing finds what is wrong with what it reads, and only that") {
    for (const Fault& fault : kFaults) {
        CAPTURE(fault.name);
        Call call(fault.mode);
        fault.spoil(call);
        Result<Plan> plan = plan_of(call, KVJIT_CHECK_FULL, 1);
        REQUIRE_MESSAGE(plan.has_value(), plan.error().message());
        const Result<void> queued = plan->run(call.reads());
        REQUIRE_MESSAGE(queued.has_value(), queued.error().message());
        const Result<void> ran = plan->synchronize();
        if (!fault.of_stores) {
            expect_found(fault, call, ran);
            continue;
        }
        CHECK_MESSAGE(ran.has_value(), ran.error().message());
        CHECK(loads_slots(call));
        CHECK(same_bytes(call.cache, Call(fault.mode).cache));
    }
}

TEST_CASE("a plan that stores nothing needs no start_pos, and refuses new keys") {
    for (const char* mode : {"offset", "token_table", "page_table", "block_table"}) {
        CAPTURE(mode);
        Call call(mode);
        Batch batch = call.batch();
        batch.start_pos = nullptr;
        const Kernel kernel = *engine().kernel(call.spec(), *Target::cuda_emulated());
        PlanOptions options;
        options.stores_nothing = 1;
        for (const kvjit_batch* mirror :
             {static_cast<const kvjit_batch*>(nullptr), static_cast<const kvjit_batch*>(&batch)}) {
            options.host_batch = mirror;
            Result<Plan> plan = kernel.plan(batch, options);
            REQUIRE_MESSAGE(plan.has_value(), plan.error().message());
            const Result<void> refused = plan->run(call.tensors());
            REQUIRE(!refused.has_value());
            CHECK(std::string(refused.error().message()) ==
                  "current_key is given; the plan's options.stores_nothing is 1");
            REQUIRE(plan->run(call.reads()).has_value());
            CHECK(plan->synchronize().has_value());
            CHECK(loads_slots(call));
        }
    }
}

TEST_CASE("a mirror whose new tokens share a slot is refused, unless nothing is stored") {
    Call call("token_table");
    call.table[11] = call.table[12];
    const Batch batch = call.batch();
    const Kernel kernel = *engine().kernel(call.spec(), *Target::cuda_emulated());
    PlanOptions options;
    options.host_batch = &batch;
    const Result<Plan> refused = kernel.plan(batch, options);
    REQUIRE(!refused.has_value());
    CHECK(std::string(refused.error().argument()) == "cachestarts");
    options.stores_nothing = 1;
    CHECK(kernel.plan(batch, options).has_value());
}

TEST_CASE("a plan that stores nothing has no store program compiled") {
    Call call("offset");
    for (const int stores_nothing : {0, 1}) {
        EngineOptions in_memory;
        in_memory.cache_dir = "";
        const Engine own = *Engine::create(in_memory);
        const Kernel kernel = *own.kernel(call.spec(), *Target::cuda_emulated());
        PlanOptions options;
        options.stores_nothing = stores_nothing;
        REQUIRE(kernel.plan(call.batch(), options).has_value());
        CHECK(own.stats().compiles == 3 - stores_nothing);  // check, load and store
    }
}

}  // namespace
}  // namespace kvjit::test
