// What only a device's check has: when it looks, what it says beside the host's sentence, what a fault leaves behind.
// error/api runs each of its misuses through the check, too.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <algorithm>

#include "device_plan.h"

namespace kvjit::test {
namespace {

TEST_CASE("a sound call passes in every mode") {
    for (const char* mode : {"offset", "token_table", "page_table,page_size=4", "block_table,page_size=4,layout=N2LTHD",
                             "block_pointers,page_size=4,layout=2LTHD", "sequence_table,layout=NL2THD"}) {
        CAPTURE(mode);
        TensorsCase c(std::string("op=KeyValueCache,cache_mode=") + mode);
        Plan plan = device_plan(c);
        const auto before = c.snapshot();
        REQUIRE(plan.run(c.tensors, c.layer_idx).has_value());
        const Result<void> ran = plan.synchronize();
        CHECK_MESSAGE(ran.has_value(), ran.error().message());
        CHECK(c.snapshot() != before);
    }
}

std::string sentence(const char* spec, void (*spoil)(BatchCase&)) {
    BatchCase c(spec);
    spoil(c);
    const auto result = run_on_device(c, {KVJIT_CHECK_FULL, true});
    REQUIRE(!result.has_value());
    return result.error().message;
}

TEST_CASE("a sentence is the host's, and says where it was found") {
    CHECK(sentence(kOffset, [](BatchCase& c) { c.seqstarts[3] = 3; }) ==
          "seqstarts[3] is 3; starts may not fall, seqstarts[2] is 4 (sequence 2) "
          "(found on the device, nothing was written since) [found by KVJIT_CHECK_BATCH and up]");
    CHECK(sentence(kOffset, [](BatchCase& c) {
              c.batch.max_kvlen = 6;
          }).starts_with("max_kvlen is 6; sequence 2 has 9 keys ("));
    CHECK(sentence(kPages, [](BatchCase& c) { c.set_table({0, 4, 8, 12, 16, 20}, {3, 2}); })
              .starts_with("kvstarts gives sequence 2 9 keys; its row of cachestarts has 2 pages of 4 tokens, room for "
                           "8 ("));
    CHECK(sentence(kPages, [](BatchCase& c) { c.table[7] = 61; }) ==
          "cachestarts[2, 1] is 61; its 4 tokens reach slot 64, max_tokens is 64 (sequence 2) "
          "(found on the device, nothing was written since) [found by KVJIT_CHECK_FULL]");
    CHECK(sentence(kBlocks, [](BatchCase& c) { c.table[8] = 2; })
              .starts_with("cachestarts sends two new tokens, of sequences 1 and 2, to token 0 of block 2; each takes "
                           "one of its own, unless options.stores_nothing is 1 ("));
    CHECK(sentence(kPages, [](BatchCase& c) { c.set_lengths({1, 4, 1}, {6, 3, 9}); })
              .starts_with("kvstarts[2] is 9; with 4 new tokens, which are keys too, it takes at least 10, unless "
                           "options.stores_nothing is 1 (sequence 1) ("));
    CHECK(sentence(kPointers, [](BatchCase& c) {
              c.table[3] = 0x700000000008;
          }).starts_with("cachestarts[1, 0] is 0x700000000008; blocks begin at multiples of 16 bytes (sequence 1) ("));
    CHECK(
        sentence(kPointers, [](BatchCase& c) { c.table[3] = 0x700000000000, c.table[8] = 0x7000000003f0; })
            .starts_with("cachestarts sends new tokens of sequences 1 and 2 to blocks of 2048 bytes that overlap, one "
                         "of them at 0x7000000003f0, unless options.stores_nothing is 1 ("));
}

struct ShortTensor {
    kvjit_tensor kvjit_tensors::* tensor;
    std::int64_t rows;
    const char* argument;
    std::int64_t value, sequence;
};
constexpr ShortTensor kShort[] = {
    {&kvjit_tensors::current_key, 3, "seqstarts", 4, 1},
    {&kvjit_tensors::key, 17, "kvstarts", 18, 2},
};

TEST_CASE("rows that tensors lack are found where only the device knows how many it takes") {
    for (const ShortTensor& each : kShort) {
        CAPTURE(each.argument);
        TensorsCase c(kStore);
        (c.tensors.*each.tensor).shape[0] = each.rows;
        Plan plan = device_plan(c);
        const auto before = c.snapshot();
        REQUIRE(plan.run(c.tensors, c.layer_idx).has_value());
        const Result<void> found = plan.synchronize();
        REQUIRE(!found.has_value());
        CHECK(found.error().status() == KVJIT_BAD_SHAPE);
        CHECK(std::string(found.error().argument()) == each.argument);
        CHECK(found.error().value() == each.value);
        CHECK(found.error().sequence() == each.sequence);
        CHECK(std::string(found.error().message()).find(" have " + std::to_string(each.rows) + " rows (") !=
              std::string::npos);
        CHECK(c.snapshot() == before);
    }
}

TEST_CASE("where a plan may store, new tokens are checked even if no run brings any") {
    TensorsCase c(kStore);
    c.table[8] = 10;
    c.tensors.current_key = c.tensors.current_value = Tensor();
    Plan plan = device_plan(c);
    REQUIRE(plan.run(c.tensors, c.layer_idx).has_value());
    const Result<void> found = plan.synchronize();
    REQUIRE(!found.has_value());
    CHECK(std::string(found.error().argument()) == "cachestarts");
    CHECK(found.error().value() == 10);
    CHECK(found.error().sequence() == 2);
}

TEST_CASE("a fault stays until it is read, and the plan works again when the array is mended") {
    TensorsCase c(kStore);
    c.table[3] = 1000;
    Plan plan = device_plan(c);
    const auto before = c.snapshot();
    REQUIRE(plan.run(c.tensors, c.layer_idx).has_value());
    c.table[3] = 8;
    REQUIRE(plan.run(c.tensors, c.layer_idx).has_value());
    CHECK(c.snapshot() == before);
    CHECK(!plan.synchronize().has_value());
    REQUIRE(plan.run(c.tensors, c.layer_idx).has_value());
    CHECK(plan.synchronize().has_value());
    CHECK(c.snapshot() != before);
}

TEST_CASE("levels: BATCH looks at no entry, NONE at nothing, and no store leaves the cache") {
    TensorsCase c(kStore);
    c.table[3] = 1000;
    c.tensors.key = c.tensors.value = Tensor();
    for (const kvjit_check_level level : {KVJIT_CHECK_BATCH, KVJIT_CHECK_NONE}) {
        CAPTURE(static_cast<int>(level));
        PlanOptions options;
        options.check_level = level;
        Plan plan = device_plan(c, options);
        REQUIRE(plan.run(c.tensors, c.layer_idx).has_value());
        CHECK(plan.synchronize().has_value());
    }
}

TEST_CASE("unchecked, a token past the end of its sequence's block is stored nowhere") {
    TensorsCase c("op=KeyValueCache,cache_mode=sequence_table,layout=NL2THD");
    c.tensors.key = c.tensors.value = Tensor();
    c.set_lengths({0, 2, 0}, {0, 18, 0});  // positions 16 and 17; blocks have 16 tokens
    PlanOptions options;
    options.check_level = KVJIT_CHECK_NONE;
    Plan plan = device_plan(c, options);
    const auto before = c.snapshot();
    REQUIRE(plan.run(c.tensors, c.layer_idx).has_value());
    CHECK(plan.synchronize().has_value());
    CHECK(c.snapshot() == before);
}

TEST_CASE("Merge writes no row past those that the device counts") {
    TensorsCase c("op=Merge");
    std::ranges::fill(c.seqstarts, 0);
    Plan plan = device_plan(c);
    const auto before = c.snapshot();
    REQUIRE(plan.run(c.tensors, c.layer_idx).has_value());
    CHECK(plan.synchronize().has_value());
    CHECK(c.snapshot() == before);
}

}  // namespace
}  // namespace kvjit::test
