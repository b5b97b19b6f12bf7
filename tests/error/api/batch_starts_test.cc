// Refused unless checks are off: starts, positions, rows of the table.
#include "batch_misuse.h"

namespace kvjit::test {
namespace {

constexpr BatchMisuse kMisuses[] = {
    {"seqstarts begin past 0", kMerge, [](BatchCase& c) { c.seqstarts[0] = 1; }, bad_index("seqstarts", 1, 0, 0)},
    {"kvstarts begin below 0", kDense, [](BatchCase& c) { c.kvstarts[0] = -1; }, bad_index("kvstarts", -1, 0, 0)},
    {"seqstarts fall", kPages, [](BatchCase& c) { c.seqstarts[2] = 0; }, bad_index("seqstarts", 0, 1, 1)},
    {"kvstarts fall", kDense, [](BatchCase& c) { c.kvstarts[1] = 10; }, bad_index("kvstarts", 9, 10, 1)},
    {"more keys than kernels count", kDense, [](BatchCase& c) { c.kvstarts[3] = (std::int64_t{1} << 30) + 10; },
     bad_index("kvstarts", (std::int64_t{1} << 30) + 10, (std::int64_t{1} << 30) + 9, 2)},
    {"start_pos below 0", kPages, [](BatchCase& c) { c.start_pos[1] = -1; }, bad_index("start_pos", -1, 0, 1), true},
    {"m is not start_pos + n", kStore, [](BatchCase& c) { c.start_pos[2] = 8; }, bad_index("start_pos", 8, 7, 2), true},
    {"fewer keys than new tokens in a cache", kPages,
     [](BatchCase& c) { c.set_lengths({1, 4, 1}, {6, 3, 9}), c.start_pos[1] = 0; }, bad_index("kvstarts", 9, 10, 1),
     true},
    {"fewer keys than new tokens, and a start_pos that makes up for it", kStore,
     [](BatchCase& c) { c.set_lengths({1, 4, 1}, {6, 3, 9}), c.start_pos[1] = -1; }, bad_index("kvstarts", 9, 10, 1),
     true},
    {"max_seqlen too small", kMerge, [](BatchCase& c) { c.batch.max_seqlen = 2; }, bad_argument("max_seqlen", 2, 3, 1)},
    {"max_kvlen too small", kDense, [](BatchCase& c) { c.batch.max_kvlen = 8; }, bad_argument("max_kvlen", 8, 9, 2)},
    {"more keys than a row has pages for", kPages, [](BatchCase& c) { c.set_table({0, 4, 8, 12, 16, 20}, {3, 2}); },
     bad_index("kvstarts", 9, 8, 2)},
    {"257 keys, 4 pages of 64", "op=MultiHeadCacheAttention,cache_mode=page_table,page_size=64",
     [](BatchCase& c) {
         c.batch.max_tokens = 1000;
         c.set_lengths({1}, {257});
         c.set_table({0, 64, 128, 192}, {1, 4});
     },
     bad_index("kvstarts", 257, 256, 0)},
    {"keys in a table without columns", kBlocks, [](BatchCase& c) { c.set_table({}, {3, 0}); },
     bad_index("kvstarts", 6, 0, 0)},
    {"row_index below 0", kPages, [](BatchCase& c) { c.row_index = {0, -1, 2}, c.bind(); },
     bad_index("row_index", -1, 3, 1)},
    {"row_index beyond the rows", kPages, [](BatchCase& c) { c.row_index = {0, 1, 3}, c.bind(); },
     bad_index("row_index", 3, 3, 2)},
    {"rowstarts begin past 0", kPages, [](BatchCase& c) { c.rowstarts = {1, 3, 6, 9}, c.set_table(c.table, {9}); },
     bad_index("rowstarts", 1, 0, 0)},
    {"rowstarts fall", kPages, [](BatchCase& c) { c.rowstarts = {0, 3, 2, 9}, c.set_table(c.table, {9}); },
     bad_index("rowstarts", 2, 3, 1)},
    {"rowstarts end past the table", kPages,
     [](BatchCase& c) { c.rowstarts = {0, 3, 6, 10}, c.set_table(c.table, {9}); }, bad_index("rowstarts", 10, 9, 2)},
    {"CSR row shorter than its keys", kBlocks,
     [](BatchCase& c) { c.rowstarts = {0, 1, 6, 9}, c.set_table(c.table, {9}); }, bad_index("kvstarts", 6, 4, 0)},
};

}  // namespace

constinit const std::span<const BatchMisuse> starts_misuses = kMisuses;

TEST_CASE("starts, positions and rows") {
    expect_misuses(starts_misuses, KVJIT_CHECK_BATCH);
}

}  // namespace kvjit::test
