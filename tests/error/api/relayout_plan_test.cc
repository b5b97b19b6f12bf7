// Relayouts whose plan is refused: which side and which of its arguments, what was given and what is taken.
#include <cstdint>
#include <string_view>

#include "relayout_misuse.h"

namespace kvjit::test {
namespace {

constexpr std::int64_t kMany = std::int64_t{1} << 40;

// ---- Numbers of kvjit_relayout and options -------------------------------------------------------------------------

constexpr RelayoutMisuse kNumbers[] = {
    {"no ranks", kPages, kBlocks, [](RelayoutCase& c) { c.relayout.from_ranks = 0; }, bad_argument("from_ranks", 0, 1)},
    {"ranks below 0", kPages, kBlocks, [](RelayoutCase& c) { c.relayout.to_ranks = -2; },
     bad_argument("to_ranks", -2, 1)},
    {"more ranks than counts", kPages, kBlocks, [](RelayoutCase& c) { c.relayout.to_ranks = kMany; },
     bad_argument("to_ranks", kMany, 0x7fffffff)},
    {"rank below 0", kPages, kBlocks, [](RelayoutCase& c) { c.relayout.from_rank = -1; },
     bad_argument("from_rank", -1, 0)},
    {"rank past its ranks", kPages, kBlocks, [](RelayoutCase& c) { c.relayout.to_ranks = 3, c.relayout.to_rank = 3; },
     bad_argument("to_rank", 3, 2)},
    {"head below 0", kPages, kBlocks, [](RelayoutCase& c) { c.relayout.from_head = -1; },
     bad_argument("from_head", -1, 0)},
    {"head past the heads", kPages, kBlocks, [](RelayoutCase& c) { c.relayout.to_head = 2; },
     bad_argument("to_head", 2, 1)},
    {"more heads than there are", kPages, kBlocks, [](RelayoutCase& c) { c.relayout.num_kv_heads = 3; },
     bad_argument("num_kv_heads", 3, 2)},
    {"heads below 0", kPages, kBlocks, [](RelayoutCase& c) { c.relayout.num_kv_heads = -1; },
     bad_argument("num_kv_heads", -1, 1)},
    {"heads from the second one on", kPages, kBlocks, [](RelayoutCase& c) { c.relayout.from_head = 1; },
     bad_argument("num_kv_heads", 2, 1)},
    {"heads to the second one on", kPages, kBlocks,
     [](RelayoutCase& c) { c.relayout.to_head = 1, c.relayout.num_kv_heads = 2; }, bad_argument("num_kv_heads", 2, 1)},
    {"heads from a number that wraps round", kPages, kBlocks,
     [](RelayoutCase& c) { c.relayout.from_head = INT64_MAX, c.relayout.num_kv_heads = 2; },
     bad_argument("from_head", INT64_MAX, 1)},
    {"other numbers of heads", kPages, kBlocks, [](RelayoutCase& c) { c.to.batch.num_kv_heads = 3; },
     bad_argument("num_kv_heads", 2, 3)},
    {"more layers than there are", kPages, kBlocks, [](RelayoutCase& c) { c.relayout.num_layers = 3; },
     bad_argument("num_layers", 3, 2)},
    {"layers below 0", kPages, kBlocks, [](RelayoutCase& c) { c.relayout.num_layers = INT64_MIN; },
     bad_argument("num_layers", INT64_MIN, 1)},
    {"other numbers of layers", kPages, kBlocks, [](RelayoutCase& c) { c.to.batch.num_layers = 1; },
     bad_argument("num_layers", 2, 1)},
    {"a plan that stores nothing", kPages, kBlocks, [](RelayoutCase& c) { c.options.stores_nothing = 1; },
     bad_argument("stores_nothing")},
    {"a batch of the host's", kPages, kBlocks, [](RelayoutCase& c) { c.options.host_batch = &c.to.batch; },
     bad_argument("host_batch")},
    {"splits", kPages, kBlocks, [](RelayoutCase& c) { c.options.split_keys = 64; }, bad_argument("split_keys")},
    {"splits of prefills", kPages, kBlocks, [](RelayoutCase& c) { c.options.prefill_split_keys = 64; },
     bad_argument("prefill_split_keys")},
    {"a level that there isn't", kPages, kBlocks, [](RelayoutCase& c) { c.options.check_level = 3; },
     bad_argument("check_level", 3, 2)},
};

// ---- Batches -------------------------------------------------------------------------------------------------------

constexpr RelayoutMisuse kBatches[] = {
    {"other numbers of sequences", kPages, kBlocks, [](RelayoutCase& c) { c.to.batch.batch_size = 2; },
     bad_argument("to.batch_size", 2, 3)},
    {"sequences below 0", kPages, kBlocks, [](RelayoutCase& c) { c.from.batch.batch_size = -1; },
     bad_argument("from.batch_size", -1, 0)},
    {"no layers", kPages, kBlocks, [](RelayoutCase& c) { c.from.batch.num_layers = 0; },
     bad_argument("from.num_layers", 0, 1)},
    {"query heads in place of kv heads", kPages, kBlocks,
     [](RelayoutCase& c) {
         c.from.batch.num_heads = c.from.batch.num_kv_heads;
         c.from.batch.num_kv_heads = 0;
     },
     bad_argument("from.num_kv_heads", 0, 1)},
    {"tokens that begin elsewhere", kPages, kBlocks,
     [](RelayoutCase& c) {
         static constexpr std::int64_t kElsewhere[] = {77, 77, 77};
         c.from.batch.start_pos = kElsewhere;
     },
     bad_index("from.start_pos", 77, 5, 0)},
    {"a misaligned start_pos", kPages, kBlocks,
     [](RelayoutCase& c) { c.from.batch.start_pos = reinterpret_cast<const char*>(c.from.batch.seqstarts) + 4; },
     bad_argument("from.start_pos", 4, 8)},
    {"slots of its own, from", kPages, kBlocks,
     [](RelayoutCase& c) { c.from.batch.store_slots = c.from.batch.cachestarts; }, bad_argument("from.store_slots")},
    {"slots of its own, to", kPages, kBlocks, [](RelayoutCase& c) { c.to.batch.store_slots = c.to.batch.cachestarts; },
     bad_argument("to.store_slots")},
    {"null starts", kPages, kBlocks, [](RelayoutCase& c) { c.from.batch.seqstarts = nullptr; },
     bad_argument("from.seqstarts")},
    {"null keys", kPages, kBlocks, [](RelayoutCase& c) { c.to.batch.kvstarts = nullptr; }, bad_argument("to.kvstarts")},
    {"misaligned starts", kPages, kBlocks,
     [](RelayoutCase& c) { c.to.batch.seqstarts = reinterpret_cast<const char*>(c.to.batch.seqstarts) + 4; },
     bad_argument("to.seqstarts", 4, 8)},
    {"null table", kPages, kBlocks, [](RelayoutCase& c) { c.from.batch.cachestarts.data = nullptr; },
     bad_argument("from.cachestarts.data")},
    {"a table of another type", kPages, kBlocks, [](RelayoutCase& c) { c.to.batch.cachestarts.dtype = KVJIT_I32; },
     bad_dtype("to.cachestarts.dtype", KVJIT_I32, KVJIT_I64)},
    {"starts that fall", kPages, kBlocks, [](RelayoutCase& c) { c.from.seqstarts = {0, 4, 1, 6}, c.from.bind(); },
     bad_index("from.seqstarts", 1, 4, 1)},
    {"more tokens than keys to copy", kPages, kBlocks,
     [](RelayoutCase& c) { c.from.seqstarts = {0, 1, 5, 7}, c.from.start_pos.clear(), c.from.bind(); },
     bad_index("from.seqstarts", 4, 3, 1)},
    {"more tokens than keys to write", kPages, kBlocks,
     [](RelayoutCase& c) { c.to.seqstarts = {0, 1, 5, 7}, c.to.start_pos.clear(), c.to.bind(); },
     bad_index("to.kvstarts", 9, 10, 1)},
    {"other counts of tokens", kPages, kBlocks, [](RelayoutCase& c) { c.to.set_lengths({1, 3, 1}, {6, 3, 9}); },
     bad_index("to.seqstarts", 1, 2, 2)},
    {"other counts of tokens by their ranks", kPages, kBlocks, [](RelayoutCase& c) { c.relayout.from_ranks = 2; },
     bad_index("to.seqstarts", 1, 0, 0)},
    {"a page outside", kPages, kBlocks, [](RelayoutCase& c) { c.from.table[6] = 62, c.from.bind(); },
     bad_index("from.cachestarts", 62, 64, 2)},
    {"a block below 0", kPages, kBlocks, [](RelayoutCase& c) { c.to.table[1] = -5, c.to.bind(); },
     bad_index("to.cachestarts", -5, 8, 0)},
    {"a block outside", kPages, kBlocks, [](RelayoutCase& c) { c.to.table[1] = 8, c.to.bind(); },
     bad_index("to.cachestarts", 8, 8, 0)},
    {"a row too short", kPages, kBlocks, [](RelayoutCase& c) { c.to.set_lengths({1, 3, 2}, {6, 3, 13}); },
     bad_index("to.kvstarts", 13, 12, 2)},
    {"two tokens to one slot", kPages, kApart, [](RelayoutCase& c) { c.to.table[17] = c.to.table[5], c.to.bind(); },
     bad_index("to.cachestarts", 42, 0, 2)},
    {"null address", kPages, kPointers, [](RelayoutCase& c) { c.to.table[0] = 0, c.to.bind(); },
     bad_index("to.cachestarts", 0, 4, 0)},
    {"misaligned address", kPointers, kBlocks, [](RelayoutCase& c) { c.from.table[0] = 0x1002, c.from.bind(); },
     bad_index("from.cachestarts", 0x1002, 4, 0, true)},
    {"no addresses of scales", kPages, kScaledPointers, [](RelayoutCase& c) { c.to.batch.scalestarts = {}; },
     bad_argument("to.scalestarts")},
    {"addresses of scales for none", kPages, kBlocks,
     [](RelayoutCase& c) { c.to.batch.scalestarts = c.to.batch.cachestarts; }, bad_argument("to.scalestarts")},
};

/// All but what the cases above have in more than one form.
void expect_no_plan(const RelayoutMisuse& misuse) {
    CAPTURE(misuse.name);
    RelayoutCase c(misuse.from, misuse.to);
    misuse.spoil(c);
    const auto before = c.snapshot();
    Handle<kvjit_plan> plan;
    kvjit_error error = new_error();
    const kvjit_status status = c.try_plan(&plan, &error);
    expect_error(status, error, misuse.want);
    CHECK(std::string(error.message).find("stores_nothing is 1") == std::string::npos);
    CHECK(c.snapshot() == before);
}

TEST_CASE("relayouts: numbers and options that are refused") {
    for (const RelayoutMisuse& misuse : kNumbers) expect_no_plan(misuse);
}

TEST_CASE("relayouts: batches that are refused, by their side") {
    for (const RelayoutMisuse& misuse : kBatches) expect_no_plan(misuse);
}

}  // namespace
}  // namespace kvjit::test
