// Plans that store nothing on a device: what they need, refuse and leave uncompiled. That they find all else that is
// wrong error/api shows with each of its misuses.
#include "device_plan.h"

#include <algorithm>
#include <utility>

namespace kvjit::test {
namespace {

PlanOptions storing_nothing() {
    PlanOptions options;
    options.stores_nothing = 1;
    return options;
}

constexpr std::byte kSlots{0x3a};  // what the cache is full of, and nothing else

/// Whether both keys and values are the cache's.
bool loads_slots(const TensorsCase& c) {
    const auto is_slot = [](std::byte byte) { return byte == kSlots; };
    return std::ranges::all_of(bytes_of(c.tensors.key), is_slot) &&
           std::ranges::all_of(bytes_of(c.tensors.value), is_slot);
}

TEST_CASE("a plan that stores nothing needs no start_pos, and refuses new keys") {
    for (const char* mode :
         {"offset", "token_table", "page_table,page_size=4", "block_table,page_size=4,layout=N2LTHD"}) {
        CAPTURE(mode);
        TensorsCase c(std::string("op=KeyValueCache,cache_mode=") + mode);
        c.batch.start_pos = nullptr;
        std::ranges::fill(bytes_of(c.tensors.cache), kSlots);
        PlanOptions options = storing_nothing();
        for (const kvjit_batch* mirror : {static_cast<const kvjit_batch*>(nullptr), &std::as_const(c.batch)}) {
            options.host_batch = mirror;
            Plan plan = device_plan(c, options);
            const Result<void> refused = plan.run(c.tensors, c.layer_idx);
            REQUIRE(!refused.has_value());
            CHECK(std::string(refused.error().message()) ==
                  "current_key is given; the plan's options.stores_nothing is 1");
            kvjit_tensors reads = c.tensors;
            reads.current_key = reads.current_value = Tensor();
            REQUIRE(plan.run(reads, c.layer_idx).has_value());
            CHECK(plan.synchronize().has_value());
            CHECK(loads_slots(c));
        }
    }
}

TEST_CASE("a mirror whose new tokens share a slot is refused, unless nothing is stored") {
    BatchCase c(kTokens);
    c.table[7] = c.table[6];
    PlanOptions options;
    options.host_batch = &c.batch;
    const Result<Plan> refused = device_kernel(c.spec).plan(c.batch, options);
    REQUIRE(!refused.has_value());
    CHECK(std::string(refused.error().argument()) == "cachestarts");
    options.stores_nothing = 1;
    CHECK(device_kernel(c.spec).plan(c.batch, options).has_value());
}

TEST_CASE("a plan that stores nothing has no store program compiled") {
    const BatchCase c("op=KeyValueCache,cache_mode=offset");
    for (const int stores_nothing : {0, 1}) {
        EngineOptions in_memory;
        in_memory.cache_dir = "";
        const Engine own = *Engine::create(in_memory);
        const Kernel kernel = *own.kernel(c.spec, *Target::cuda_emulated());
        PlanOptions options;
        options.stores_nothing = stores_nothing;
        REQUIRE(kernel.plan(c.batch, options).has_value());
        CHECK(own.stats().compiles == 3 - stores_nothing);  // check, load and store
    }
}

}  // namespace
}  // namespace kvjit::test
