// Each fault in a device's index arrays is found by the check kernel, named by kvjit_plan_synchronize, and leaves every
// byte of cache and outputs as it was.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "device_call.h"

namespace kvjit::test {
namespace {

TEST_CASE("a sound call passes in every mode") {
    for (const char* mode :
         {"offset", "token_table", "page_table", "block_table", "block_pointers", "sequence_table"}) {
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

TEST_CASE("a sentence is the host's, and says where it was found") {
    Call start("offset");
    start.seqstarts[3] = 3;
    CHECK(sentence(start) ==
          "seqstarts[3] is 3; starts may not fall, seqstarts[2] is 4 (sequence 2) "
          "(found on the device, nothing was written since) [found by KVJIT_CHECK_BATCH and up]");
    Call keys("offset");
    keys.max_kvlen = 6;
    CHECK(sentence(keys).starts_with("max_kvlen is 6; sequence 1 has 7 keys ("));
    Call width("page_table");
    width.kvstarts = {0, 6, 23, 24};
    width.start_pos = {5, 14, 1};
    CHECK(sentence(width).starts_with(
        "kvstarts gives sequence 1 17 keys; its row of cachestarts has 4 pages of 4 tokens, room for 16 ("));
    Call entry("page_table");
    entry.table[4] = kSlots - 3;
    CHECK(sentence(entry) ==
          "cachestarts[1, 0] is 61; its 4 tokens reach slot 64, max_tokens is 64 (sequence 1) "
          "(found on the device, nothing was written since) [found by KVJIT_CHECK_FULL]");
    Call slots("block_table");
    slots.table[5] = 1;
    CHECK(sentence(slots).starts_with(
        "cachestarts sends two new tokens, of sequences 0 and 1, to token 1 of block 1; each takes one of its own, "
        "unless options.stores_nothing is 1 ("));
    Call fewer("offset");
    fewer.kvstarts = {0, 6, 8, 10};
    CHECK(
        sentence(fewer).starts_with("kvstarts[2] is 8; with 3 new tokens, which are keys too, it takes at least 9, "
                                    "unless options.stores_nothing is 1 (sequence 1) ("));
    Call unaligned("block_pointers");
    unaligned.table[4] = 0x700000000008;
    CHECK(sentence(unaligned).starts_with(
        "cachestarts[1, 0] is 0x700000000008; blocks begin at multiples of 16 bytes (sequence 1) ("));
    Call overlapping("block_pointers");
    overlapping.table[1] = 0x700000000000;
    overlapping.table[5] = 0x7000000003f0;
    CHECK(
        sentence(overlapping)
            .starts_with("cachestarts sends new tokens of sequences 0 and 1 to blocks of 1024 bytes that overlap, one "
                         "of them at 0x7000000003f0, unless options.stores_nothing is 1 ("));
    Call rows("offset");
    rows.rows = 3;
    CHECK(sentence(rows).starts_with("seqstarts[2] is 4; tensors of the query side have 3 rows (sequence 1) ("));
}

/// What is found where each of two layers has its table, or its slots: `entry` stands in the second one's.
std::string of_two_layers(bool slots, std::int64_t entry) {
    Call call("page_table");
    const auto entries = static_cast<std::int64_t>(call.table.size());
    call.table[2 * kMaxPages] = 28;  // the cache has half as many slots, too
    call.table.insert(call.table.end(), call.table.begin(), call.table.end());
    std::vector<std::int64_t> chosen = {21, 22, 23, 24, 21, 22, 23, 24};
    (slots ? chosen[6] : call.table[static_cast<std::size_t>(entries)]) = entry;
    Batch batch = call.batch();
    batch.num_layers = 2;
    batch.cachestarts = Tensor(call.table.data(), KVJIT_I64, {2, entries / kMaxPages, kMaxPages});
    if (slots) batch.store_slots = Tensor(chosen.data(), KVJIT_I64, {2, 4});
    Tensors tensors = call.tensors();
    tensors.cache = Tensor(call.cache.data(), KVJIT_F32, {kSlots / 2, 2, 2, kHeads, kDim});
    batch.max_tokens = kSlots / 2;
    Plan plan = *(*engine().kernel(call.spec(), *Target::cuda_emulated())).plan(batch);
    REQUIRE(plan.run(tensors).has_value());
    const Result<void> ran = plan.synchronize();
    REQUIRE(!ran.has_value());
    return ran.error().message();
}

TEST_CASE("where layers have tables or slots of their own, the layer is named") {
    CHECK(of_two_layers(false, -2).starts_with(
        "cachestarts[0, 0] is -2; slots count from 0, max_tokens is 32 (sequence 0) (layer 1) (found on the device"));
    CHECK(of_two_layers(true, 32).starts_with(
        "store_slots[2] is 32; the cache has 32 slots (sequence 1) (layer 1) (found on the device"));
    CHECK(of_two_layers(true, 22).starts_with(
        "store_slots sends two new tokens, of sequences 1 and 1, to slot 22; each takes one of its own, unless "
        "options.stores_nothing is 1 (layer 1) (found on the device"));
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
              .starts_with("kvstarts[2] is 1073741837; it takes at most 1073741830, a sequence has at most 1073741824 "
                           "keys (sequence 1) ("));
    CHECK(same_bytes(call.cache, Call("offset").cache));
}

TEST_CASE("where a plan may store, new tokens are checked even if no run brings any") {
    Call call("page_table");
    call.table[5] = 4;
    Plan plan = *plan_of(call);
    REQUIRE(plan.run(call.reads()).has_value());
    const Result<void> found = plan.synchronize();
    REQUIRE(!found.has_value());
    CHECK(std::string(found.error().argument()) == "cachestarts");
    CHECK(found.error().value() == 5);
    CHECK(found.error().sequence() == 1);
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
