// Arrays as engines have them in place of kvjit's own: lengths, lengths of last pages, slots of new tokens, a table for
// each layer.
#include <algorithm>
#include <string>
#include <utility>

#include "batch_misuse.h"

namespace kvjit::test {
namespace {

/// In place of kvstarts. Nobody says where new tokens begin, so that lengths alone are wrong.
void set_lens(BatchCase& c, const Numbers& lens) {
    c.kvlens = lens, c.bind();
    c.batch.kvstarts = c.batch.start_pos = nullptr;
}

/// The same as the case's kvstarts: m = 6, 3, 9 in pages of 4.
void set_last(BatchCase& c, const Numbers& last) {
    c.rowstarts = {0, 2, 3, 6}, c.last_page_len = last;
    c.set_table({0, 4, 8, 13, 17, 25}, {6});
    c.batch.kvstarts = c.batch.start_pos = nullptr;
}

/// A table for each of the two layers.
void set_layers(BatchCase& c, const Numbers& entries, std::int64_t layers = 2) {
    c.set_table(entries, {layers, 3, 3});
}

constexpr std::int64_t kMost = std::int64_t{1} << 30;

constexpr BatchMisuse kOutline[] = {
    {"kvlens beside kvstarts", kPages, [](BatchCase& c) { c.batch.kvlens = c.batch.kvstarts; }, bad_argument("kvlens")},
    {"last_page_len beside kvlens", kPages, [](BatchCase& c) { c.kvlens = {6, 3, 9}, set_last(c, {2, 3, 1}); },
     bad_argument("last_page_len")},
    {"last_page_len without rowstarts", kPages,
     [](BatchCase& c) { c.last_page_len = {2, 3, 1}, c.bind(), c.batch.kvstarts = nullptr; },
     bad_argument("last_page_len")},
    {"no array of keys", kBlocks, [](BatchCase& c) { c.batch.kvstarts = nullptr; }, bad_argument("kvstarts")},
    {"lengths of packed keys", kDense, [](BatchCase& c) { set_lens(c, {6, 3, 9}); }, bad_argument("kvstarts")},
    {"lengths for a token table", kTokens, [](BatchCase& c) { set_lens(c, {6, 3, 9}); }, bad_argument("kvstarts")},
    {"lengths beside a mask", "op=MultiHeadCacheAttention,cache_mode=page_table,page_size=4,attn_mask=2",
     [](BatchCase& c) { set_lens(c, {6, 3, 9}); }, bad_argument("kvstarts")},
    {"lengths at an odd address", kPages,
     [](BatchCase& c) { set_lens(c, {6, 3, 9}), c.batch.kvlens = static_cast<const char*>(c.batch.kvlens) + 4; },
     bad_argument("kvlens", 4, 8)},
    {"slots of another type", kPages,
     [](BatchCase& c) { c.set_slots({5, 6, 7, 8, 9, 10}, {6}), c.batch.store_slots.dtype = KVJIT_F32; },
     bad_dtype("store_slots.dtype", KVJIT_F32, KVJIT_I64)},
    {"slots of more layers than there are", kStore, [](BatchCase& c) { c.set_slots(Numbers(18, -1), {3, 6}); },
     bad_shape("store_slots.shape[0]", 3, 2)},
    {"slots of no rank, beside no sequences", kPages,
     [](BatchCase& c) {
         c.set_slots({1}, {1}), c.batch.batch_size = 0, c.batch.cachestarts = {};
         c.batch.store_slots.rank = 1'000'000'000;
     },
     bad_shape("store_slots.rank", 1'000'000'000, 1)},
    {"a table of more layers than there are", kPages, [](BatchCase& c) { set_layers(c, Numbers(27, 0), 3); },
     bad_shape("cachestarts.shape[0]", 3, 2)},
    {"fewer slots than new tokens", kPages, [](BatchCase& c) { c.set_slots({5, 6, 7, 8, 9}, {5}); },
     bad_shape("store_slots.shape[0]", 5, 6), true},
    {"fewer slots of each layer than new tokens", kStore,
     [](BatchCase& c) { c.set_slots({5, 6, 7, 8, 9, 5, 6, 7, 8, 9}, {2, 5}); }, bad_shape("store_slots.shape[1]", 5, 6),
     true},
    {"fewer entries of each layer's token table than keys", kTokens,
     [](BatchCase& c) { c.set_table(Numbers(34, 0), {2, 17}); }, bad_shape("cachestarts.shape[1]", 17, 18)},
};

constexpr BatchMisuse kStarts[] = {
    {"a length below 0", kPages, [](BatchCase& c) { set_lens(c, {6, -1, 9}); }, bad_index("kvlens", -1, 0, 1)},
    {"a length that no sequence has", kBlocks, [](BatchCase& c) { set_lens(c, {6, 3, kMost + 1}); },
     bad_index("kvlens", kMost + 1, kMost, 2)},
    {"a length longer than its row", kPages, [](BatchCase& c) { set_lens(c, {13, 3, 9}); },
     bad_index("kvlens", 13, 12, 0)},
    {"a length beyond max_kvlen", kOffset, [](BatchCase& c) { set_lens(c, {6, 3, 9}), c.batch.max_kvlen = 8; },
     bad_argument("max_kvlen", 8, 9, 2)},
    {"fewer keys than new tokens, by kvlens", kPages, [](BatchCase& c) { set_lens(c, {6, 2, 9}); },
     bad_index("kvlens", 2, 3, 1), true},
    {"an empty last page", kPages, [](BatchCase& c) { set_last(c, {2, 0, 1}); }, bad_index("last_page_len", 0, 4, 1)},
    {"a last page longer than pages are", kPages, [](BatchCase& c) { set_last(c, {2, 3, 5}); },
     bad_index("last_page_len", 5, 4, 2)},
    {"fewer keys than new tokens, by last_page_len", kPages, [](BatchCase& c) { set_last(c, {2, 2, 1}); },
     bad_index("last_page_len", 2, 3, 1), true},
    {"more pages than a sequence has keys", kPages,
     [](BatchCase& c) { set_last(c, {2, 3, 1}), c.rowstarts[3] = 3 + kMost; },
     bad_index("rowstarts", 3 + kMost, 3 + kMost / 4, 2)},
    {"so many pages that their keys are no number", kPages,
     [](BatchCase& c) { set_last(c, {2, 3, 1}), c.rowstarts[3] = std::int64_t{1} << 62; },
     bad_index("rowstarts", std::int64_t{1} << 62, 3 + kMost / 4, 2)},
    {"one table for all layers whose rows are too short", kPages,
     [](BatchCase& c) {
         set_layers(c, {0, 4, 8, 13, 17, 25});
         c.batch.cachestarts.shape[2] = 2, c.batch.cachestarts.strides[0] = 0, c.batch.cachestarts.strides[1] = 2;
     },
     bad_index("kvstarts", 9, 8, 2)},
    {"lengths for a cache without blocks", kBlocks,
     [](BatchCase& c) { set_lens(c, {6, 3, 9}), c.batch.num_blocks = 0; }, bad_argument("num_blocks", 0, 1, 0)},
    {"lengths for a cache without slots", kPages, [](BatchCase& c) { set_lens(c, {6, 3, 9}), c.batch.max_tokens = 0; },
     bad_argument("max_tokens", 0, 1, 0)},
    {"lengths for blocks of sequences without any", kSequences,
     [](BatchCase& c) { set_lens(c, {6, 3, 9}), c.batch.num_blocks = 0; }, bad_argument("num_blocks", 0, 1, 0)},
    {"rows that fall, where pages count keys", kPages, [](BatchCase& c) { set_last(c, {2, 3, 1}), c.rowstarts[2] = 1; },
     bad_index("rowstarts", 1, 2, 1)},
};

constexpr BatchMisuse kEntries[] = {
    {"a slot past the last", kPages, [](BatchCase& c) { c.set_slots({5, 6, 7, 64, -1, -2}, {6}); },
     bad_index("store_slots", 64, 64, 1), true},
    {"a slot past the last block's", kBlocks, [](BatchCase& c) { c.set_slots({5, 6, 31, 8, 32, -1}, {6}); },
     bad_index("store_slots", 32, 32, 2), true},
    {"one slot for the last token of a sequence and the first of the next", kPages,
     [](BatchCase& c) { c.set_slots({5, 5, 7, 8, 9, 10}, {6}); }, bad_index("store_slots", 5, 0, 1), true},
    {"one slot for two tokens", kPages, [](BatchCase& c) { c.set_slots({5, 6, 7, 5, -1, -1}, {6}); },
     bad_index("store_slots", 5, 0, 1), true},
    {"one slot for two tokens in the second layer", kStore,
     [](BatchCase& c) { c.set_slots({1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 5}, {2, 6}); }, bad_index("store_slots", 5, 0, 2),
     true},
    {"a page of the second layer's table", kPages,
     [](BatchCase& c) { set_layers(c, {0, 4, -1, 8, -1, -1, 13, 17, 25, 0, 4, -1, 8, -1, -1, 13, 61, 25}); },
     bad_index("cachestarts", 61, 64, 2)},
    {"one block for two sequences in the second layer's table", kBlocks,
     [](BatchCase& c) { set_layers(c, {0, 1, -1, 2, -1, -1, 3, 5, 7, 0, 1, -1, 2, -1, -1, 3, 5, 2}); },
     bad_index("cachestarts", 2, 0, 2), true},
};

/// What is said of them up to where it was found: only where layers have tables or slots of their own, which layer's.
struct Told {
    std::string_view name;  // of a misuse above
    std::string_view says;
};
constexpr Told kTold[] = {
    {"a slot past the last", "store_slots[3] is 64; the cache has 64 slots (sequence 1) "},
    {"one slot for two tokens in the second layer",
     "each takes one of its own, unless options.stores_nothing is 1 "
     "(layer 1) "},
    {"a page of the second layer's table",
     "cachestarts[2, 1] is 61; its 4 tokens reach slot 64, max_tokens is 64 (sequence 2) (layer 1) "},
    {"one block for two sequences in the second layer's table", "(layer 1) "},
};

/// Legal ones, on host and device.
constexpr BatchMisuse kLegal[] = {
    {"lengths", kPages, [](BatchCase& c) { set_lens(c, {6, 3, 9}); }, {}},
    {"lengths of blocks", kBlocks, [](BatchCase& c) { set_lens(c, {6, 3, 9}); }, {}},
    {"last pages", kPages, [](BatchCase& c) { set_last(c, {2, 3, 1}); }, {}},
    {"last page of a sequence without pages",
     kPages,
     [](BatchCase& c) {
         set_last(c, {2, -7, 1});
         c.seqstarts = {0, 1, 1, 3}, c.rowstarts = {0, 2, 2, 5};
     },
     {}},
    {"slots, some of them none", kPages, [](BatchCase& c) { c.set_slots({5, 63, -1, 0, -9, 6}, {6}); }, {}},
    {"more slots than new tokens, which nobody looks at",
     kBlocks,
     [](BatchCase& c) { c.set_slots({5, 31, -1, 0, -9, 6, 99, 99}, {8}); },
     {}},
    {"one table for all layers, by a stride of 0",
     kPages,
     [](BatchCase& c) {
         set_layers(c, {0, 4, -1, 8, -1, -1, 13, 17, 25});
         c.batch.cachestarts.strides[0] = 0;
     },
     {}},
    {"a table a layer",
     kPages,
     [](BatchCase& c) { set_layers(c, {0, 4, -1, 8, -1, -1, 13, 17, 25, 4, 0, -1, 25, -1, -1, 8, 17, 13}); },
     {}},
};

TEST_CASE("engines' arrays: what doesn't go together") {
    expect_misuses(kOutline, KVJIT_CHECK_NONE);
}
TEST_CASE("engines' arrays: lengths") {
    expect_misuses(kStarts, KVJIT_CHECK_BATCH);
}
TEST_CASE("engines' arrays: slots and tables of layers") {
    expect_misuses(kEntries, KVJIT_CHECK_FULL);
}
TEST_CASE("rows of pages beside rowstarts: the refusal says which table goes with them") {
    BatchCase c(kPages);
    c.rowstarts = {0, 2, 3, 6}, c.bind();
    const auto refused = rt::check_batch(c.spec, c.batch, {KVJIT_CHECK_FULL, true});
    REQUIRE(!refused);
    CHECK(refused.error().argument == "cachestarts.shape[0]");
    CHECK_MESSAGE(refused.error().message.ends_with("; with rowstarts a table is (entries), or (L, entries)"),
                  refused.error().message);
}

TEST_CASE("engines' arrays: which layer's slots and tables are wrong") {
    for (const Told& told : kTold) {
        CAPTURE(told.name);
        const auto* misuse = std::ranges::find(kEntries, told.name, &BatchMisuse::name);
        REQUIRE(misuse != std::end(kEntries));
        BatchCase c(misuse->spec);
        misuse->spoil(c);
        for (const auto& [refused, ends] : {std::pair(rt::check_batch(c.spec, c.batch, {KVJIT_CHECK_FULL, true}), "["),
                                            std::pair(run_on_device(c, {KVJIT_CHECK_FULL, true}), "(found on the")}) {
            REQUIRE(!refused);
            CAPTURE(refused.error().message);
            CHECK(refused.error().message.find(std::string(told.says) + ends) != std::string::npos);
        }
    }
}
TEST_CASE("engines' arrays: legal ones are accepted by host and device") {
    for (const BatchMisuse& legal : kLegal) {
        CAPTURE(legal.name);
        BatchCase c(legal.spec);
        legal.spoil(c);
        for (const bool stores : {true, false}) {
            CAPTURE(stores);
            expect_accepted(rt::check_batch(c.spec, c.batch, {KVJIT_CHECK_FULL, stores}));
            expect_accepted(run_on_device(c, {KVJIT_CHECK_FULL, stores}));
        }
    }
}

}  // namespace
}  // namespace kvjit::test
