// Refused at the full level: entries outside the cache, two new tokens on one slot.
#include <limits>

#include "batch_misuse.h"

namespace kvjit::test {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

constexpr BatchMisuse kEntryMisuses[] = {
    {"offset below 0", kOffset, [](BatchCase& c) { c.table[1] = -1; }, bad_index("cachestarts", -1, 64, 1)},
    {"offset runs past the cache", kOffset, [](BatchCase& c) { c.table[2] = 56; }, bad_index("cachestarts", 56, 64, 2)},
    {"offset whose end overflows", kOffset, [](BatchCase& c) { c.table[0] = kMost; },
     bad_index("cachestarts", kMost, 64, 0)},
    {"slot past the last", kTokens, [](BatchCase& c) { c.table[17] = 64; }, bad_index("cachestarts", 64, 64, 2)},
    {"whole page past the cache", kPages, [](BatchCase& c) { c.table[7] = 61; }, bad_index("cachestarts", 61, 64, 2)},
    {"last page past the cache", kPages, [](BatchCase& c) { c.table[1] = 63; }, bad_index("cachestarts", 63, 64, 0)},
    {"page whose end overflows", kPages, [](BatchCase& c) { c.table[6] = kMost; },
     bad_index("cachestarts", kMost, 64, 2)},
    {"used page of -1", kPages, [](BatchCase& c) { c.table[3] = -1; }, bad_index("cachestarts", -1, 64, 1)},
    {"used page of -1 in a window", kWindowed, [](BatchCase& c) { c.table[1] = -1; },
     bad_index("cachestarts", -1, 64, 0)},
    {"a window's first page of -1", kWindowed, [](BatchCase& c) { c.batch.window_left = 4, c.table[6] = -1; },
     bad_index("cachestarts", -1, 64, 2)},
    {"a page that is loaded, whatever window the batch has for other operators", kStore,
     [](BatchCase& c) { c.batch.window_left = 0, c.table[0] = 99; }, bad_index("cachestarts", 99, 64, 0)},
    {"pages in a cache smaller than a page", kPages,
     [](BatchCase& c) { c.batch.max_tokens = 3, c.set_lengths({1}, {4}), c.set_table({0}, {1, 1}); },
     bad_index("cachestarts", 0, 3, 0)},
    {"block past the last", kBlocks, [](BatchCase& c) { c.table[8] = 8; }, bad_index("cachestarts", 8, 8, 2)},
    {"32-bit block of -1", "op=KeyValueCache,cache_mode=block_table,page_size=4,layout=N2LTHD,index_type=i32",
     [](BatchCase& c) { c.table[0] = -1, c.bind(); }, bad_index("cachestarts", -1, 8, 0)},
    {"bad page in the row that row_index picks", kPages,
     [](BatchCase& c) { c.row_index = {2, 1, 0}, c.table[2] = 99, c.bind(); }, bad_index("cachestarts", 99, 64, 2)},
    {"bad page of a CSR row", kPages,
     [](BatchCase& c) { c.rowstarts = {0, 2, 3, 6}, c.set_table({0, 4, 77, 13, 17, 25}, {6}); },
     bad_index("cachestarts", 77, 64, 1)},
};

constexpr BatchMisuse kSharedSlots[] = {
    {"offsets that overlap in new tokens", kOffset, [](BatchCase& c) { c.table = {0, 4, 40}, c.bind(); },
     bad_index("cachestarts", 5, 0, 1), true},
    {"one token's slot twice in a sequence", kTokens, [](BatchCase& c) { c.table[7] = c.table[6]; },
     bad_index("cachestarts", 41, 0, 1), true},
    {"one slot for two sequences", kTokens, [](BatchCase& c) { c.table[17] = c.table[5]; },
     bad_index("cachestarts", 42, 0, 2), true},
    {"pages that overlap by a token", kPages, [](BatchCase& c) { c.table[8] = 10; }, bad_index("cachestarts", 10, 0, 2),
     true},
    {"one block for two sequences", kBlocks, [](BatchCase& c) { c.table[8] = 2; }, bad_index("cachestarts", 2, 0, 2),
     true},
};

}  // namespace

constinit const std::span<const BatchMisuse> entry_misuses = kEntryMisuses;
constinit const std::span<const BatchMisuse> shared_slot_misuses = kSharedSlots;

TEST_CASE("numbers of pages in place of first slots: the refusal says what a page table holds") {
    BatchCase c(kPages);
    c.set_lengths({1, 3, 2}, {6, 3, 9}), c.set_table({0, 1, -1, 2, -1, -1, 3, 4, 5}, {3, 3});
    const auto refused = rt::check_batch(c.spec, c.batch, {KVJIT_CHECK_FULL, true});
    REQUIRE(!refused);
    CHECK_MESSAGE(refused.error().message.contains("options.stores_nothing is 1; entries of a page_table are the first "
                                                   "slots of pages, entries of a block_table are numbers of blocks ["),
                  refused.error().message);
}

TEST_CASE("entries outside the cache") {
    expect_misuses(entry_misuses, KVJIT_CHECK_FULL);
}
TEST_CASE("two new tokens on one slot") {
    expect_misuses(shared_slot_misuses, KVJIT_CHECK_FULL);
}

TEST_CASE("messages say where, how far and what is allowed") {
    BatchCase c("op=MultiHeadCacheAttention,cache_mode=page_table,page_size=16");
    c.batch.max_tokens = 4100;
    c.set_lengths({1, 1}, {16, 64});
    c.set_table({0, 0, 0, 0, 16, 32, 48, 4096}, {2, 4});
    const auto result = rt::check_batch(c.spec, c.batch, {KVJIT_CHECK_FULL});
    REQUIRE_FALSE(result.has_value());
    CHECK(result.error().message ==
          "cachestarts[1, 3] is 4096; its 16 tokens reach slot 4111, max_tokens is 4100 (sequence 1) "
          "[found by KVJIT_CHECK_FULL]");
}

}  // namespace kvjit::test
