// What only a device's check has: when it looks, what it says beside the host's sentence, what a fault leaves behind.
// error/api runs each of its misuses through the check, too.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>
#include <vector>

#include "device_plan.h"
#include "oracle/layout.h"

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

/// A place of the cache that a new token, a row of current_key and current_value, is to be stored at.
struct Stored {
    std::int64_t row, block, token;  // block: 0 where the cache has none
};

/// Copies these rows to layer layer_idx of a float32 cache.
void store(TensorsCase& c, const std::vector<Stored>& rows) {
    const kvjit_tensor& cache = c.tensors.cache;
    const auto axes = oracle::layout_axes(c.spec.layout);
    for (const Stored& each : rows) {
        for (const std::int64_t part : {0, 1}) {
            const kvjit_tensor& from = part == 0 ? c.tensors.current_key : c.tensors.current_value;
            for (std::int64_t head = 0; head < from.shape[1]; ++head) {
                const auto to =
                    oracle::offset_of({each.block, each.token, c.layer_idx, part, head, 0}, axes, cache.strides);
                std::memcpy(static_cast<float*>(cache.data) + to,
                            static_cast<const float*>(from.data) + each.row * from.strides[0] + head * from.strides[1],
                            static_cast<std::size_t>(c.spec.head_dim) * sizeof(float));
            }
        }
    }
}

/// A store of drawn numbers, without outputs.
struct StoreCase : TensorsCase {
    StoreCase(std::string_view text, const std::function<void(TensorsCase&)>& spoil, Guard guard)
        : TensorsCase(text, guarded_memory(guard)) {
        tensors.key = tensors.value = Tensor();
        spoil(*this);
        Rng rng(17);
        draw_inputs(tensors, rng);
    }
};

/// Stored where nothing looks at entries, a spoilt call puts these rows to their places, and writes nothing else.
void expect_stored(std::string_view spec, const std::function<void(TensorsCase&)>& spoil,
                   const std::vector<Stored>& rows, kvjit_check_level level) {
    CAPTURE(static_cast<int>(level));
    for (const Guard guard : {Guard::kAfter, Guard::kBefore}) {  // of what lies beside the cache
        StoreCase c(spec, spoil, guard), expected(spec, spoil, guard);
        const auto before = c.snapshot();
        REQUIRE(before == expected.snapshot());
        store(expected, rows);
        PlanOptions options;
        options.check_level = level;
        Plan plan = device_plan(c, options);
        REQUIRE(plan.run(c.tensors, c.layer_idx).has_value());
        CHECK(plan.synchronize().has_value());
        CHECK(c.snapshot() == expected.snapshot());
        CHECK((rows.empty() || c.snapshot() != before));
    }
}

TEST_CASE("levels: BATCH looks at no entry, NONE at nothing; what is inside of the cache is stored, and nothing else") {
    // Pages of 4 tokens. New tokens are at position 5 of sequence 0, 0 to 2 of sequence 1, 7 and 8 of sequence 2, whose
    // pages begin at 0, 4; 8; 13, 17, 25.
    constexpr std::string_view kPagesOf4 = "op=KeyValueCache,cache_mode=page_table,page_size=4,layout=TL2HD";
    for (const kvjit_check_level level : {KVJIT_CHECK_BATCH, KVJIT_CHECK_NONE}) {
        for (const std::int64_t outside : {std::int64_t{1000}, std::int64_t{64}, std::int64_t{-5}}) {
            CAPTURE(outside);
            expect_stored(
                kPagesOf4, [&](TensorsCase& c) { c.table[3] = outside; }, {{0, 0, 5}, {4, 0, 20}, {5, 0, 25}}, level);
        }
        // Pages across the cache's ends.
        expect_stored(
            kPagesOf4, [](TensorsCase& c) { c.table[3] = 62; },
            {{0, 0, 5}, {1, 0, 62}, {2, 0, 63}, {4, 0, 20}, {5, 0, 25}}, level);
        expect_stored(
            kPagesOf4, [](TensorsCase& c) { c.table[3] = -1; },
            {{0, 0, 5}, {2, 0, 0}, {3, 0, 1}, {4, 0, 20}, {5, 0, 25}}, level);
    }
}

TEST_CASE("unchecked, tokens past the end of their sequence's block are stored nowhere, those before it are stored") {
    // Blocks of 16 tokens; those of the sequences are 6, 0, 3.
    constexpr std::string_view kBlocksOf16 = "op=KeyValueCache,cache_mode=sequence_table,layout=NL2THD";
    expect_stored(kBlocksOf16, [](TensorsCase& c) { c.set_lengths({0, 2, 0}, {0, 18, 0}); }, {}, KVJIT_CHECK_NONE);
    expect_stored(
        kBlocksOf16, [](TensorsCase& c) { c.set_lengths({1, 4, 1}, {3, 18, 16}); },
        {{0, 6, 2}, {1, 0, 14}, {2, 0, 15}, {5, 3, 15}}, KVJIT_CHECK_NONE);
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
