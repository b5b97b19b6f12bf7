// What must not be refused, the bad-input bugs of other attention libraries among it.
#include "batch_misuse.h"

namespace kvjit::test {
namespace {

struct Legal {
    std::string_view name;
    std::string_view spec;
    void (*change)(BatchCase&);
};

constexpr const char* kNarrow = "op=MultiHeadCacheAttention,cache_mode=page_table,page_size=4,index_type=i32";

constexpr Legal kLegal[] = {
    {"offset", kOffset, [](BatchCase&) {}},
    {"token table", kTokens, [](BatchCase&) {}},
    {"page table", kPages, [](BatchCase&) {}},
    {"block table", kBlocks, [](BatchCase&) {}},
    {"32-bit table", kNarrow, [](BatchCase&) {}},
    {"store", kStore, [](BatchCase&) {}},
    {"no page before a window", kWindowed, [](BatchCase& c) { c.table[0] = c.table[6] = -1; }},
    {"no slot before a window", "op=MultiHeadCacheAttention,cache_mode=token_table,has_window=1",
     [](BatchCase& c) {
         for (const int key : {0, 1, 2, 3, 9, 10, 11, 12, 13, 14}) c.table[static_cast<std::size_t>(key)] = -1;
     }},
    {"a window of all keys", kWindowed, [](BatchCase& c) { c.batch.window_left = c.batch.window_right = -1; }},
    {"dense", kDense, [](BatchCase&) {}},
    {"merge", kMerge, [](BatchCase&) {}},
    {"CSR table", kPages, [](BatchCase& c) { c.rowstarts = {0, 2, 3, 6}, c.set_table({0, 4, 8, 13, 17, 25}, {6}); }},
    {"rows picked by index", kPages,
     [](BatchCase& c) {
         c.row_index = {5, 3, 4},
         c.set_table({-1, -1, -1, -1, -1, -1, -1, -1, -1, 8, -1, -1, 13, 17, 25, 0, 4, -1}, {6, 3});
     }},
    {"rows with padding between", kPages, [](BatchCase& c) { c.set_table({0, 4, -9, 8, -9, -9, 13, 17, 25}, {3, 3}); }},
    {"more rows than sequences", kOffset, [](BatchCase& c) { c.set_table({0, 20, 40, -1}, {4}); }},
    {"257 keys, 5 pages of 64", "op=MultiHeadCacheAttention,cache_mode=page_table,page_size=64",
     [](BatchCase& c) {
         c.batch.max_tokens = 257, c.set_lengths({1}, {257}), c.set_table({0, 64, 128, 192, 256}, {1, 5});
     }},
    {"page_size no power of two", "op=MultiHeadCacheAttention,cache_mode=page_table,page_size=3",
     [](BatchCase& c) { c.batch.max_tokens = 7, c.set_lengths({1}, {7}), c.set_table({4, 1, 0}, {1, 3}); }},
    {"last slot of the cache", kOffset, [](BatchCase& c) { c.table[2] = 55; }},
    {"every key a new one", kPages, [](BatchCase& c) { c.set_lengths({6, 3, 9}, {6, 3, 9}); }},
    {"a sequence without new tokens", kPages, [](BatchCase& c) { c.set_lengths({1, 0, 2}, {6, 3, 9}); }},
    {"a sequence without tokens, its row all -1", kPages,
     [](BatchCase& c) { c.set_lengths({1, 0, 2}, {6, 0, 9}), c.table[3] = -1; }},
    {"an empty sequence's offset is never used", kOffset,
     [](BatchCase& c) { c.set_lengths({1, 0, 2}, {6, 0, 9}), c.table[1] = -1; }},
    {"nothing but empty sequences", kTokens, [](BatchCase& c) { c.set_lengths({0, 0}, {0, 0}), c.set_table({}, {0}); }},
    {"empty sequences, table without columns", kBlocks,
     [](BatchCase& c) { c.set_lengths({0, 0}, {0, 0}), c.set_table({}, {2, 0}); }},
    {"an empty cache", kPages,
     [](BatchCase& c) { c.batch.max_tokens = 0, c.set_lengths({0}, {0}), c.set_table({-1}, {1, 1}); }},
    {"no sequences, nothing given", kPages,
     [](BatchCase& c) {
         c.batch.batch_size = 0, c.batch.seqstarts = c.batch.kvstarts = c.batch.start_pos = nullptr,
         c.batch.cachestarts = {};
     }},
    {"no sequences to attend", kDense,
     [](BatchCase& c) { c.batch.batch_size = 0, c.batch.seqstarts = c.batch.kvstarts = nullptr; }},
    {"no sequences to merge", kMerge, [](BatchCase& c) { c.batch.batch_size = 0, c.batch.seqstarts = nullptr; }},
    {"fewer keys than queries, dense", kDense, [](BatchCase& c) { c.set_lengths({4, 3}, {2, 0}); }},
    {"old tokens shared between sequences", kPages,
     [](BatchCase& c) { c.set_lengths({1, 1}, {5, 5}), c.set_table({0, 4, 0, 8}, {2, 2}); }},
    {"new tokens of one sequence among old ones of another", kPages,
     [](BatchCase& c) { c.set_lengths({4, 1}, {4, 5}), c.set_table({0, -1, 0, 8}, {2, 2}); }},
    {"new tokens on one page, on slots of their own", kPages,
     [](BatchCase& c) { c.set_lengths({1, 1}, {3, 4}), c.set_table({8, 8}, {2, 1}); }},
    {"upper bounds larger than need be", kPages, [](BatchCase& c) { c.batch.max_seqlen = 100, c.batch.max_kvlen = 9; }},
    {"every sequence decoding", kPages, [](BatchCase& c) { c.batch.decoding_batches = 3; }},
    {"a negative scale", kDense, [](BatchCase& c) { c.batch.softmax_scale = -0.25F; }},
    {"kv heads from num_heads", kStore, [](BatchCase& c) { c.batch.num_kv_heads = 0; }},
    {"kv heads from num_heads and the group", kPages, [](BatchCase& c) { c.batch.num_kv_heads = 0; }},
    {"query heads from num_kv_heads and the group", kPages, [](BatchCase& c) { c.batch.num_heads = 0; }},
    {"32-bit starts", "op=MultiHeadCacheAttention,cache_mode=page_table,page_size=4,starts_type=i32",
     [](BatchCase&) {}},
    {"no start_pos", kPages, [](BatchCase& c) { c.batch.start_pos = nullptr; }},
    {"a cache without blocks for no keys", kBlocks,
     [](BatchCase& c) { c.batch.num_blocks = 0, c.set_lengths({0, 0}, {0, 0}), c.set_table({-1, -1}, {2, 1}); }},
    {"store looks at kv heads only", kStore, [](BatchCase& c) { c.batch.num_heads = -5; }},
    {"merge looks at seqstarts and heads only", kMerge,
     [](BatchCase& c) {
         c.batch.kvstarts = nullptr, c.batch.num_kv_heads = c.batch.num_layers = c.batch.max_tokens = -3;
     }},
    {"dense looks at no cache", kDense,
     [](BatchCase& c) {
         c.batch.start_pos = nullptr, c.batch.cachestarts = {}, c.batch.num_layers = 0, c.batch.max_tokens = -1;
     }},
    {"no axis L, one layer", "op=KeyValueCache,cache_mode=block_table,page_size=4,layout=2NTHD",
     [](BatchCase& c) { c.batch.num_layers = 1; }},
    {"as many new tokens as a call may have", kMerge,
     [](BatchCase& c) { c.set_lengths({1, std::int64_t{1} << 29, (std::int64_t{1} << 29) - 1}, {1, 1, 1}); }},
    {"slopes", "op=MultiHeadAttention,is_alibi=1", [](BatchCase& c) { c.slopes = {1, 0.5F, 0, -1}, c.bind(); }},
    {"a cache of 10 billion tokens", kOffset,
     [](BatchCase& c) { c.batch.max_tokens = 10'000'000'000, c.table = {0, 4'294'967'296, 9'999'999'991}, c.bind(); }},
};

TEST_CASE("legal batches") {
    for (const Legal& legal : kLegal) {
        CAPTURE(legal.name);
        BatchCase c(legal.spec);
        legal.change(c);
        for (const auto level : {KVJIT_CHECK_FULL, KVJIT_CHECK_BATCH, KVJIT_CHECK_NONE}) {
            expect_accepted(rt::check_batch(c.spec, c.batch, {level}));
            expect_accepted(rt::check_batch(c.spec, c.batch, {level, false}));
        }
    }
}

}  // namespace
}  // namespace kvjit::test
