// Each fault in a device's index arrays is found by the check kernel, named by kvjit_plan_synchronize, and leaves every
// byte of cache and outputs as it was.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "device_call.h"

namespace kvjit::test {
namespace {

TEST_CASE("a sound call passes in every mode") {
    for (const char* mode : {"offset", "token_table", "page_table", "block_table"}) {
        CAPTURE(mode);
        Call call(mode);
        Result<Plan> plan = plan_of(call);
        REQUIRE_MESSAGE(plan.has_value(), plan.error().message());
        const Result<void> ran = run(*plan, call);
        CHECK_MESSAGE(ran.has_value(), ran.error().message());
        CHECK(!same_bytes(call.cache, Call(mode).cache));
        CHECK(!same_bytes(call.outputs, Call(mode).outputs));
    }
}

TEST_CASE("each fault is found and named, and nothing is written") {
    for (const Fault& fault : kFaults) {
        CAPTURE(fault.name);
        Call call(fault.mode);
        fault.spoil(call);
        Result<Plan> plan = plan_of(call);
        REQUIRE_MESSAGE(plan.has_value(), plan.error().message());
        expect_found(fault, call, run(*plan, call));
    }
}

std::string sentence(Call& call) {
    Plan plan = *plan_of(call);
    const Result<void> ran = run(plan, call);
    REQUIRE(!ran.has_value());
    return ran.error().message();
}

TEST_CASE("a fault's sentence tells an entry from what entries add up to") {
    Call start("offset");
    start.seqstarts[3] = 3;
    CHECK(sentence(start).starts_with(
        "seqstarts[3] is 3; starts begin at 0, may not fall and end by 2^62, the limit is 4 ("));
    Call tokens("offset");
    tokens.max_seqlen = 2;
    CHECK(sentence(tokens).starts_with("by seqstarts sequence 1 has 3 new tokens; max_seqlen is 2 ("));
    Call keys("offset");
    keys.max_kvlen = 6;
    CHECK(sentence(keys).starts_with("by kvstarts sequence 1 has 7 keys; max_kvlen is 6 ("));
    Call width("page_table");
    width.kvstarts = {0, 6, 23, 24};
    width.start_pos = {5, 14, 1};
    CHECK(sentence(width).starts_with(
        "by kvstarts sequence 1 has 5 entries of cachestarts to read; its row has room for 4 ("));
    Call entry("offset");
    entry.table[1] = -20;
    CHECK(sentence(entry).starts_with("cachestarts, entry 0 of the sequence's row, is -20; its tokens"));
    Call slots("page_table");
    slots.table[5] = 4;
    CHECK(sentence(slots).starts_with(
        "cachestarts gives new tokens of sequences 0 and 1 slot 4; each takes one of its own, unless "
        "options.stores_nothing is 1 ("));
    Call past("offset");
    past.start_pos[1] = 3;
    CHECK(sentence(past).starts_with(
        "start_pos[1] is 3; keys less new tokens make it 4, unless options.stores_nothing is 1 ("));
    Call fewer("offset");
    fewer.kvstarts = {0, 6, 8, 10};
    CHECK(
        sentence(fewer).starts_with("by kvstarts sequence 1 has 2 keys; new tokens are keys, too, so it takes at least "
                                    "3, unless options.stores_nothing is 1 ("));
}

TEST_CASE("more keys than a sequence may have are named as such") {
    Call call("offset");
    call.kvstarts = {0, 6, (std::int64_t{1} << 30) + 13, (std::int64_t{1} << 30) + 15};
    Plan plan = *plan_of(call);
    Tensors store_only = call.tensors();  // without rows for so many keys
    store_only.key = store_only.value = Tensor();
    REQUIRE(plan.run(store_only).has_value());
    const Result<void> found = plan.synchronize();
    REQUIRE(!found.has_value());
    CHECK(found.error().status() == KVJIT_BAD_INDEX);
    CHECK(std::string(found.error().message())
              .starts_with("by kvstarts sequence 1 has 1073741831 keys; a sequence has at most 1073741824 ("));
    CHECK(same_bytes(call.cache, Call("offset").cache));
}

TEST_CASE("a fault stays until it is read, and the plan works again when the array is mended") {
    Call call("page_table");
    call.table[4] = 1000;
    Plan plan = *plan_of(call);
    REQUIRE(plan.run(call.tensors()).has_value());
    call.table[4] = 17;
    REQUIRE(plan.run(call.tensors()).has_value());
    CHECK(same_bytes(call.cache, Call("page_table").cache));
    CHECK(!plan.synchronize().has_value());
    CHECK(run(plan, call).has_value());
    CHECK(!same_bytes(call.cache, Call("page_table").cache));
}

TEST_CASE("levels: BATCH looks at no entry, NONE at nothing, and no store leaves the cache") {
    Call call("page_table");
    call.table[4] = 1000;
    for (const kvjit_check_level level : {KVJIT_CHECK_BATCH, KVJIT_CHECK_NONE}) {
        CAPTURE(static_cast<int>(level));
        Result<Plan> plan = plan_of(call, level);
        REQUIRE(plan.has_value());
        Tensors store_only = call.tensors();
        store_only.key = store_only.value = Tensor();
        REQUIRE(plan->run(store_only).has_value());
        CHECK(plan->synchronize().has_value());
    }
}

}  // namespace
}  // namespace kvjit::test
