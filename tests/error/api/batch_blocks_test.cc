// Refused of blocks at addresses and of blocks of whole sequences: what only they have.
#include <limits>

#include "batch_misuse.h"

namespace kvjit::test {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
/// Where no block is: nobody may go there.
constexpr std::int64_t kFar = 0x7e0000000000;
/// Bytes of a block of BatchCase: float32, and of float32 scales.
constexpr std::int64_t kBlockBytes = 2048, kScaleBytes = 256;
constexpr std::int64_t kWord = 4, kDeviceWord = 16;

constexpr const char* kStorePointers = "op=KeyValueCache,cache_mode=block_pointers,page_size=4,layout=2LTHD";
constexpr const char* kWindowedPointers =
    "op=MultiHeadCacheAttention,cache_mode=block_pointers,page_size=4,layout=2LTHD,has_window=1,quant_bit=8";

constexpr BatchMisuse kOutlineMisuses[] = {
    {"no addresses of scales", kScaledPointers, [](BatchCase& c) { c.batch.scalestarts = {}; },
     bad_argument("scalestarts")},
    {"addresses of scales, of a cache without any", kPointers,
     [](BatchCase& c) { c.batch.scalestarts = c.batch.cachestarts; }, bad_argument("scalestarts")},
    {"addresses of scales, null", kScaledPointers, [](BatchCase& c) { c.batch.scalestarts.data = nullptr; },
     bad_argument("scalestarts.data")},
    {"addresses of scales that are none", kScaledPointers, [](BatchCase& c) { c.batch.scalestarts.dtype = KVJIT_I32; },
     bad_dtype("scalestarts.dtype", KVJIT_I32, KVJIT_I64)},
    {"addresses of scales with one axis", kScaledPointers, [](BatchCase& c) { c.batch.scalestarts.rank = 1; },
     bad_shape("scalestarts.rank", 1, 2)},
    {"one table of codes and of scales", kScaledPointers,
     [](BatchCase& c) { c.batch.scalestarts = c.batch.cachestarts; }, bad_argument("scalestarts.data")},
    {"more rows of scales", kScaledPointers, [](BatchCase& c) { c.batch.scalestarts.shape[0] = 4; },
     bad_shape("scalestarts.shape[0]", 4, 3)},
    {"fewer columns of scales", kScaledPointers, [](BatchCase& c) { c.batch.scalestarts.shape[1] = 2; },
     bad_shape("scalestarts.shape[1]", 2, 3)},
    {"rows of scales further apart", kScaledPointers, [](BatchCase& c) { c.batch.scalestarts.strides[0] = 4; },
     bad_shape("scalestarts.strides[0]", 4, 3)},
    {"a CSR table of codes, a padded one of scales", kScaledPointers,
     [](BatchCase& c) {
         const kvjit_tensor padded = c.batch.scalestarts;
         c.rowstarts = {0, 3, 6, 9}, c.set_table(c.table, {9}), c.batch.scalestarts = padded;
     },
     bad_shape("scalestarts.rank", 2, 1)},
    {"layers whose blocks' bytes go beyond 64 bits", kStorePointers,
     [](BatchCase& c) { c.batch.num_kv_heads = 1 << 30, c.batch.num_layers = 1 << 23; },
     bad_argument("num_layers", 1 << 23, (1 << 23) - 1)},
    {"max_tokens beyond 64-bit bytes, a sequence's", kSequences,
     [](BatchCase& c) { c.batch.max_tokens = kMost / 1023; }, bad_argument("max_tokens", kMost / 1023, kMost / 1024)},
    {"blocks of sequences beyond 64-bit bytes", kSequences,
     [](BatchCase& c) { c.batch.num_blocks = kMost / 1024 / 16 + 1; },
     bad_argument("num_blocks", kMost / 1024 / 16 + 1, kMost / 1024 / 16)},
    {"keys, and no blocks of sequences", kSequences, [](BatchCase& c) { c.batch.num_blocks = 0; },
     bad_argument("num_blocks", 0, 1)},
    {"blocks of sequences with two axes, of other layers", kSequences,
     [](BatchCase& c) { c.set_table({6, 0, 3}, {3, 1}); }, bad_shape("cachestarts.shape[0]", 3, 2)},
    {"row_index of blocks of sequences", kSequences, [](BatchCase& c) { c.row_index = {0, 1, 2}, c.bind(); },
     bad_argument("row_index")},
};

constexpr BatchMisuse kRowMisuses[] = {
    {"more keys than a sequence's block has tokens", kSequences, [](BatchCase& c) { c.batch.max_tokens = 8; },
     bad_index("kvstarts", 9, 8, 2)},
    {"more keys than a row's blocks have tokens", kPointers, [](BatchCase& c) { c.batch.cachestarts.shape[1] = 2; },
     bad_index("kvstarts", 9, 8, 2)},
};

constexpr BatchMisuse kEntryMisuses[] = {
    {"no block", kPointers, [](BatchCase& c) { c.table[3] = 0; }, bad_index("cachestarts", 0, kWord, 1), false,
     kDeviceWord},
    {"no block of scales", kScaledPointers, [](BatchCase& c) { c.scales[6] = 0; },
     bad_index("scalestarts", 0, kWord, 2), false, kDeviceWord},
    {"a block below 0", kPointers, [](BatchCase& c) { c.table[1] = -kFar; }, bad_index("cachestarts", -kFar, kWord, 0),
     false, kDeviceWord},
    {"a block of scales below 0", kScaledPointers, [](BatchCase& c) { c.scales[0] = -1; },
     bad_index("scalestarts", -1, kWord, 0), false, kDeviceWord},
    {"a misaligned block", kPointers, [](BatchCase& c) { c.table[8] = kFar + 2; },
     bad_index("cachestarts", kFar + 2, kWord, 2, true), false, kDeviceWord},
    {"a misaligned block of scales", kScaledPointers, [](BatchCase& c) { c.scales[7] = kFar + 1; },
     bad_index("scalestarts", kFar + 1, kWord, 2, true), false, kDeviceWord},
    {"the largest number there is", kPointers, [](BatchCase& c) { c.table[1] = kMost; },
     bad_index("cachestarts", kMost, kWord, 0, true), false, kDeviceWord},
    {"no block in a window", kWindowedPointers, [](BatchCase& c) { c.table[1] = 0; }, bad_index("cachestarts", 0, 1, 0),
     false, kDeviceWord},
    {"no block of scales where a window begins", kWindowedPointers,
     [](BatchCase& c) { c.batch.window_left = 4, c.scales[6] = 0; }, bad_index("scalestarts", 0, kWord, 2), false,
     kDeviceWord},
    {"no block in the row that row_index picks", kScaledPointers,
     [](BatchCase& c) { c.row_index = {2, 1, 0}, c.set_lengths({1, 3, 2}, {6, 3, 8}), c.scales[1] = 0, c.bind(); },
     bad_index("scalestarts", 0, kWord, 2), false, kDeviceWord},
    {"no block in a CSR row", kPointers,
     [](BatchCase& c) {
         c.rowstarts = {0, 2, 3, 6};
         c.set_table({c.table[0], c.table[1], 0, c.table[6], c.table[7], c.table[8]}, {6});
     },
     bad_index("cachestarts", 0, kWord, 1), false, kDeviceWord},
    {"a sequence's block past the last", kSequences, [](BatchCase& c) { c.table[1] = 8; },
     bad_index("cachestarts", 8, 8, 1)},
    {"a sequence's block below 0", kSequences, [](BatchCase& c) { c.table[2] = -1; },
     bad_index("cachestarts", -1, 8, 2)},
};

constexpr BatchMisuse kSharedMisuses[] = {
    {"one block, at an address, for two sequences", kPointers, [](BatchCase& c) { c.table[3] = c.table[8] = kFar; },
     bad_index("cachestarts", kFar, 0, 2, true), true},
    {"one block of scales for two sequences", kScaledPointers, [](BatchCase& c) { c.scales[3] = c.scales[8] = kFar; },
     bad_index("scalestarts", kFar, 0, 2, true), true},
    {"one block twice in a sequence", kPointers,
     [](BatchCase& c) { c.set_lengths({1, 3, 6}, {6, 3, 9}), c.table[7] = c.table[8] = kFar; },
     bad_index("cachestarts", kFar, 0, 2, true), true},
    {"blocks that overlap, the later sequence's after the other", kPointers,
     [](BatchCase& c) { c.table[3] = kFar, c.table[8] = kFar + kBlockBytes - 16; },
     bad_index("cachestarts", kFar + kBlockBytes - 16, kBlockBytes, 2, true), true},
    {"blocks that overlap, the later sequence's in front of the other", kPointers,
     [](BatchCase& c) { c.table[1] = kFar + 16, c.table[3] = kFar; },
     bad_index("cachestarts", kFar + 16, kBlockBytes, 1, true), true},
    {"blocks of scales that overlap in a sequence", kScaledPointers,
     [](BatchCase& c) { c.scales[7] = kFar, c.scales[8] = kFar + kScaleBytes - 16; },
     bad_index("scalestarts", kFar + kScaleBytes - 16, kScaleBytes, 2, true), true},
    {"blocks that overlap where addresses end", kPointers,
     [](BatchCase& c) { c.table[3] = kMost - 15, c.table[8] = kMost - 31; },
     bad_index("cachestarts", kMost - 15, kBlockBytes, 2, true), true},
    {"one block for new tokens of two sequences", kSequences,
     [](BatchCase& c) { c.set_lengths({6, 3, 2}, {6, 3, 9}), c.table = {1, 1, 3}, c.bind(); },
     bad_index("cachestarts", 1, 0, 1), true},
};

}  // namespace

constinit const std::span<const BatchMisuse> block_outline_misuses = kOutlineMisuses;
constinit const std::span<const BatchMisuse> block_row_misuses = kRowMisuses;
constinit const std::span<const BatchMisuse> block_entry_misuses = kEntryMisuses;
constinit const std::span<const BatchMisuse> shared_block_misuses = kSharedMisuses;

TEST_CASE("blocks: sizes and tables") {
    expect_misuses(block_outline_misuses, KVJIT_CHECK_NONE);
}
TEST_CASE("blocks: more keys than a row has room for") {
    expect_misuses(block_row_misuses, KVJIT_CHECK_BATCH);
}
TEST_CASE("blocks: entries that are no block") {
    expect_misuses(block_entry_misuses, KVJIT_CHECK_FULL);
}
TEST_CASE("blocks: two new tokens in one place") {
    expect_misuses(shared_block_misuses, KVJIT_CHECK_FULL);
}

struct LegalBlocks {
    std::string_view name;
    std::string_view spec;
    void (*change)(BatchCase&);
};

constexpr LegalBlocks kLegal[] = {
    {"addresses", kPointers, [](BatchCase&) {}},
    {"addresses of codes and of scales", kScaledPointers, [](BatchCase&) {}},
    {"blocks of sequences", kSequences, [](BatchCase&) {}},
    {"blocks of sequences exactly as long as the longest", kSequences, [](BatchCase& c) { c.batch.max_tokens = 9; }},
    {"anything past a row's last block", kScaledPointers,
     [](BatchCase& c) {
         c.table[2] = c.scales[4] = 0, c.table[4] = c.scales[2] = -kMost, c.table[5] = c.scales[5] = 1;
     }},
    {"anything before a window", kWindowedPointers,
     [](BatchCase& c) { c.table[0] = -8, c.scales[0] = 0, c.table[6] = 0, c.scales[6] = 3; }},
    {"blocks side by side", kPointers, [](BatchCase& c) { c.table[3] = kFar, c.table[8] = kFar + kBlockBytes; }},
    {"new tokens in one block, at places of their own", kPointers,
     [](BatchCase& c) { c.set_lengths({1, 1, 2}, {3, 4, 9}), c.table[0] = c.table[3]; }},
    {"old tokens' blocks that overlap", kPointers, [](BatchCase& c) { c.table[0] = c.table[6] + 16; }},
    {"new tokens at places of their own in one sequences' block", kSequences,
     [](BatchCase& c) { c.table = {2, 2, 2}, c.bind(); }},
    {"an empty sequence without a block", kSequences,
     [](BatchCase& c) { c.set_lengths({1, 0, 2}, {6, 0, 9}), c.table[1] = -1; }},
    {"an empty sequence without blocks at addresses", kScaledPointers,
     [](BatchCase& c) { c.set_lengths({1, 0, 2}, {6, 0, 9}), c.table[3] = c.scales[3] = 0; }},
    {"as many layers as blocks have room for", kStorePointers,
     [](BatchCase& c) { c.batch.num_kv_heads = 1 << 30, c.batch.num_layers = (1 << 23) - 1, c.set_lengths({1}, {3}); }},
};

TEST_CASE("blocks: legal batches") {
    for (const LegalBlocks& legal : kLegal) {
        CAPTURE(legal.name);
        BatchCase c(legal.spec);
        legal.change(c);
        for (const auto level : {KVJIT_CHECK_FULL, KVJIT_CHECK_BATCH, KVJIT_CHECK_NONE}) {
            for (const bool stores : {true, false}) expect_accepted(rt::check_batch(c.spec, c.batch, {level, stores}));
        }
    }
}

TEST_CASE("blocks: messages name the block, its sequence and what is allowed") {
    const auto message = [](const char* spec, void (*spoil)(BatchCase&)) {
        BatchCase c(spec);
        spoil(c);
        const auto result = rt::check_batch(c.spec, c.batch, {KVJIT_CHECK_FULL});
        REQUIRE_FALSE(result.has_value());
        return result.error().message;
    };
    CHECK(message(kPointers, [](BatchCase& c) { c.table[7] = 0; }) ==
          "cachestarts[2, 1] is 0; it takes the address of a block, a multiple of 4 (sequence 2) "
          "[found by KVJIT_CHECK_FULL]");
    CHECK(message(kScaledPointers, [](BatchCase& c) { c.scales[3] = 0x1002; }) ==
          "scalestarts[1, 0] is 0x1002; blocks begin at multiples of 4 bytes (sequence 1) "
          "[found by KVJIT_CHECK_FULL]");
    CHECK(message(kPointers, [](BatchCase& c) { c.table[3] = 0x17f0, c.table[8] = 0x1000; }) ==
          "cachestarts sends new tokens of sequences 1 and 2 to blocks of 2048 bytes that overlap, one of them at "
          "0x17f0, unless options.stores_nothing is 1 [found by KVJIT_CHECK_FULL]");
}

}  // namespace kvjit::test
