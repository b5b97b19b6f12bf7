// Refused at every level: scalars, pointers, sizes, the shape of the table.
#include <limits>

#include "batch_misuse.h"

namespace kvjit::test {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMostCount = 0x7fffffff;
/// With ALiBi.
constexpr std::int64_t kMostSlopes = 1 << 24;
/// Of one call: docs/semantics.md, section 8.
constexpr std::int64_t kMostNewTokens = std::int64_t{1} << 30;

constexpr BatchMisuse kScalarMisuses[] = {
    {"batch_size below 0", kPages, [](BatchCase& c) { c.batch.batch_size = -1; }, bad_argument("batch_size", -1, 0)},
    {"batch_size beyond 31 bits", kDense, [](BatchCase& c) { c.batch.batch_size = kMost; },
     bad_argument("batch_size", kMost, kMostCount)},
    {"no heads", kDense, [](BatchCase& c) { c.batch.num_heads = c.batch.num_kv_heads = 0; },
     bad_argument("num_heads", 0, 1)},
    {"kv heads whose query heads go beyond 31 bits", kPages,
     [](BatchCase& c) { c.batch.num_heads = 0, c.batch.num_kv_heads = 1 << 30; },
     bad_argument("num_kv_heads", 1 << 30, kMostCount / 2)},
    {"a window that the spec lacks", kDense, [](BatchCase& c) { c.batch.window_left = 127; },
     bad_argument("window_left", 127, -1)},
    {"a window to the right that the spec lacks", kPages, [](BatchCase& c) { c.batch.window_right = 0; },
     bad_argument("window_right", 0, -1)},
    {"a window below -1", kWindowed, [](BatchCase& c) { c.batch.window_left = -2; },
     bad_argument("window_left", -2, -1)},
    {"a window to the right below -1", kWindowed, [](BatchCase& c) { c.batch.window_right = -kMost; },
     bad_argument("window_right", -kMost, -1)},
    {"no soft cap where the spec has one", kWindowed, [](BatchCase& c) { c.batch.soft_cap = 0; },
     bad_argument("soft_cap")},
    {"a soft cap below 0", kWindowed, [](BatchCase& c) { c.batch.soft_cap = -30; }, bad_argument("soft_cap")},
    {"an infinite soft cap", kWindowed, [](BatchCase& c) { c.batch.soft_cap = std::numeric_limits<float>::infinity(); },
     bad_argument("soft_cap")},
    {"a soft cap that the spec lacks", kDense, [](BatchCase& c) { c.batch.soft_cap = 30; }, bad_argument("soft_cap")},
    {"addresses of scales for numbered blocks", kBlocks,
     [](BatchCase& c) { c.batch.scalestarts = c.batch.cachestarts; }, bad_argument("scalestarts")},
    {"a table with a word that is reserved", kPages, [](BatchCase& c) { c.batch.cachestarts.reserved[1] = 3; },
     bad_argument("cachestarts.reserved", 3, 0)},
    {"the same of addresses that there are none of", kPages, [](BatchCase& c) { c.batch.scalestarts.reserved[0] = 3; },
     bad_argument("scalestarts.reserved", 3, 0)},
    {"the same of slots that there are none of", kBlocks, [](BatchCase& c) { c.batch.store_slots.reserved[1] = 3; },
     bad_argument("store_slots.reserved", 3, 0)},
    {"no heads to merge", kMerge, [](BatchCase& c) { c.batch.num_heads = 0; }, bad_argument("num_heads", 0, 1)},
    {"heads beyond 31 bits", kPages, [](BatchCase& c) { c.batch.num_heads = kMost; },
     bad_argument("num_heads", kMost, kMostCount)},
    {"kv heads below 0", kPages, [](BatchCase& c) { c.batch.num_kv_heads = -2; }, bad_argument("num_kv_heads", -2, 0)},
    {"kv heads beyond 31 bits", kStore, [](BatchCase& c) { c.batch.num_kv_heads = kMost; },
     bad_argument("num_kv_heads", kMost, kMostCount)},
    {"heads no multiple of kv heads", kPages, [](BatchCase& c) { c.batch.num_heads = 5; },
     bad_argument("num_heads", 5, 4)},
    {"another group than the spec's", kDense, [](BatchCase& c) { c.batch.num_heads = 8; },
     bad_argument("num_heads", 8, 4)},
    {"more heads than slopes are made for", "op=MultiHeadAttention,is_alibi=1",
     [](BatchCase& c) { c.batch.num_heads = 1 << 25, c.batch.num_kv_heads = 1 << 24; },
     bad_argument("num_heads", 1 << 25, kMostSlopes)},
    {"as many heads as nothing has, where slopes are made", "op=MultiHeadAttention,is_alibi=1",
     [](BatchCase& c) { c.batch.num_heads = kMost; }, bad_argument("num_heads", kMost, kMostSlopes)},
    {"more kv heads than slopes are made for", "op=MultiHeadAttention,is_alibi=1",
     [](BatchCase& c) { c.batch.num_kv_heads = 1 << 24; }, bad_argument("num_kv_heads", 1 << 24, kMostSlopes / 2)},
    {"more kv heads than there may be heads", kPages, [](BatchCase& c) { c.batch.num_kv_heads = kMost; },
     bad_argument("num_kv_heads", kMost, kMostCount / 2)},
    {"heads that no kv heads follow from", kPages,
     [](BatchCase& c) { c.batch.num_kv_heads = 0, c.batch.num_heads = 5; }, bad_argument("num_heads", 5, 2)},
    {"keys, and no blocks for them", kBlocks, [](BatchCase& c) { c.batch.num_blocks = 0; },
     bad_argument("num_blocks", 0, 1)},
    {"keys, and no slots for them", kPages, [](BatchCase& c) { c.batch.max_tokens = 0; },
     bad_argument("max_tokens", 0, 1)},
    {"neither heads nor kv heads", kStore, [](BatchCase& c) { c.batch.num_kv_heads = c.batch.num_heads = 0; },
     bad_argument("num_heads", 0, 1)},
    {"no layers", kPages, [](BatchCase& c) { c.batch.num_layers = 0; }, bad_argument("num_layers", 0, 1)},
    {"layers without an axis L", "op=KeyValueCache,cache_mode=page_table,page_size=4,layout=2HTD", [](BatchCase&) {},
     bad_argument("num_layers", 2, 1)},
    {"max_tokens below 0", kOffset, [](BatchCase& c) { c.batch.max_tokens = -1; }, bad_argument("max_tokens", -1, 0)},
    {"max_tokens beyond 64-bit bytes", kOffset, [](BatchCase& c) { c.batch.max_tokens = kMost / 1023; },
     bad_argument("max_tokens", kMost / 1023, kMost / 1024)},
    {"num_blocks below 0", kBlocks, [](BatchCase& c) { c.batch.num_blocks = -1; }, bad_argument("num_blocks", -1, 0)},
    {"num_blocks beyond 64-bit bytes", kBlocks, [](BatchCase& c) { c.batch.num_blocks = kMost / 4095; },
     bad_argument("num_blocks", kMost / 4095, kMost / 4096)},
    {"decoding_batches below 0", kPages, [](BatchCase& c) { c.batch.decoding_batches = -1; },
     bad_argument("decoding_batches", -1, 0)},
    {"decoding_batches beyond B", kDense, [](BatchCase& c) { c.batch.decoding_batches = 4; },
     bad_argument("decoding_batches", 4, 3)},
    {"max_seqlen below 0", kMerge, [](BatchCase& c) { c.batch.max_seqlen = -1; }, bad_argument("max_seqlen", -1, 0)},
    {"max_kvlen below 0", kDense, [](BatchCase& c) { c.batch.max_kvlen = -1; }, bad_argument("max_kvlen", -1, 0)},
    {"num_repeat 0", kStore, [](BatchCase& c) { c.batch.num_repeat = 0; }, bad_argument("num_repeat", 0, 1)},
    {"softmax_scale is NaN", kPages,
     [](BatchCase& c) { c.batch.softmax_scale = std::numeric_limits<float>::quiet_NaN(); },
     bad_argument("softmax_scale")},
    {"softmax_scale is infinite", kDense,
     [](BatchCase& c) { c.batch.softmax_scale = -std::numeric_limits<float>::infinity(); },
     bad_argument("softmax_scale")},
    {"slopes without ALiBi", kDense, [](BatchCase& c) { c.slopes.assign(4, 0.5F), c.bind(); },
     bad_argument("alibi_slopes")},
    {"a slope is infinite", "op=MultiHeadAttention,is_alibi=1",
     [](BatchCase& c) { c.slopes = {1, 1, 1, std::numeric_limits<float>::infinity()}, c.bind(); },
     bad_argument("alibi_slopes", 3)},
};

/// The same array, one byte on.
template <class T>
T* shifted(T* pointer) {
    return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(pointer) + 1);
}

constexpr BatchMisuse kPointerMisuses[] = {
    {"seqstarts null", kMerge, [](BatchCase& c) { c.batch.seqstarts = nullptr; }, bad_argument("seqstarts")},
    {"kvstarts null", kDense, [](BatchCase& c) { c.batch.kvstarts = nullptr; }, bad_argument("kvstarts")},
    {"seqstarts misaligned", kMerge, [](BatchCase& c) { c.batch.seqstarts = shifted(c.batch.seqstarts); },
     bad_argument("seqstarts", 1, 8)},
    {"kvstarts misaligned", kDense, [](BatchCase& c) { c.batch.kvstarts = shifted(c.batch.kvstarts); },
     bad_argument("kvstarts", 1, 8)},
    {"start_pos misaligned", kPages, [](BatchCase& c) { c.batch.start_pos = shifted(c.batch.start_pos); },
     bad_argument("start_pos", 1, 8), true},
    {"32-bit seqstarts misaligned", "op=MultiHeadAttention,starts_type=i32",
     [](BatchCase& c) { c.batch.seqstarts = shifted(c.batch.seqstarts); }, bad_argument("seqstarts", 1, 4)},
    {"rowstarts misaligned", kPages, [](BatchCase& c) { c.batch.rowstarts = shifted(c.batch.seqstarts); },
     bad_argument("rowstarts", 1, 8)},
    {"row_index misaligned", kPages, [](BatchCase& c) { c.batch.row_index = shifted(c.batch.seqstarts); },
     bad_argument("row_index", 1, 8)},
    {"slopes misaligned", "op=MultiHeadAttention,is_alibi=1",
     [](BatchCase& c) { c.slopes.assign(5, 1), c.bind(), c.batch.alibi_slopes = shifted(c.batch.alibi_slopes); },
     bad_argument("alibi_slopes", 1, 4)},
    {"S below 0", kMerge, [](BatchCase& c) { c.seqstarts[3] = -1; }, bad_index("seqstarts", -1, 0, 2)},
    {"K below 0", kDense, [](BatchCase& c) { c.kvstarts[3] = -7; }, bad_index("kvstarts", -7, 0, 2)},
    {"more new tokens than a call may have, dense", kDense, [](BatchCase& c) { c.seqstarts[3] = kMostNewTokens + 1; },
     bad_index("seqstarts", kMostNewTokens + 1, kMostNewTokens, 2)},
    {"more new tokens than a call may have, merged", kMerge, [](BatchCase& c) { c.seqstarts[3] = kMost; },
     bad_index("seqstarts", kMost, kMostNewTokens, 2)},
    {"more new tokens than a call may have, stored", kStore, [](BatchCase& c) { c.seqstarts[3] = kMostNewTokens + 1; },
     bad_index("seqstarts", kMostNewTokens + 1, kMostNewTokens, 2)},
    {"S beyond 64-bit bytes", kMerge, [](BatchCase& c) { c.batch.num_heads = 1 << 30, c.seqstarts[3] = 1 << 26; },
     bad_index("seqstarts", 1 << 26, (1 << 26) - 1, 2)},
    {"K beyond 64-bit bytes", kStore, [](BatchCase& c) { c.kvstarts[3] = kMost / 255; },
     bad_index("kvstarts", kMost / 255, kMost / 256, 2)},
};

constexpr BatchMisuse kTableMisuses[] = {
    {"table missing", kPages, [](BatchCase& c) { c.batch.cachestarts = {}; }, bad_argument("cachestarts")},
    {"table null", kPages, [](BatchCase& c) { c.batch.cachestarts.data = nullptr; }, bad_argument("cachestarts.data")},
    {"table of another type", kPages, [](BatchCase& c) { c.batch.cachestarts.dtype = KVJIT_I32; },
     bad_dtype("cachestarts.dtype", KVJIT_I32, KVJIT_I64)},
    {"table of no known type", kPages, [](BatchCase& c) { c.batch.cachestarts.dtype = 77; },
     bad_dtype("cachestarts.dtype", 77, KVJIT_I64)},
    {"table misaligned", kOffset, [](BatchCase& c) { c.batch.cachestarts.data = shifted(c.table.data()); },
     bad_argument("cachestarts.data", 1, 8)},
    {"offsets with two axes", kOffset, [](BatchCase& c) { c.set_table({0, 20, 40}, {3, 1}); },
     bad_shape("cachestarts.shape[0]", 3, 2)},
    {"fewer offsets than sequences", kOffset, [](BatchCase& c) { c.set_table({0, 20}, {2}); },
     bad_shape("cachestarts.shape[0]", 2, 3)},
    {"fewer slots than keys", kTokens, [](BatchCase& c) { c.batch.cachestarts.shape[0] = 17; },
     bad_shape("cachestarts.shape[0]", 17, 18)},
    {"pages with one axis", kPages, [](BatchCase& c) { c.batch.cachestarts.rank = 1; },
     bad_shape("cachestarts.rank", 1, 2)},
    {"rank beyond any tensor's", kPages, [](BatchCase& c) { c.batch.cachestarts.rank = 1 << 30; },
     bad_shape("cachestarts.rank", 1 << 30, 2)},
    {"fewer rows than sequences", kBlocks, [](BatchCase& c) { c.batch.cachestarts.shape[0] = 2; },
     bad_shape("cachestarts.shape[0]", 2, 3)},
    {"columns below 0", kPages, [](BatchCase& c) { c.batch.cachestarts.shape[1] = -1; },
     bad_shape("cachestarts.shape[1]", -1, 0)},
    {"columns not contiguous", kPages, [](BatchCase& c) { c.batch.cachestarts.strides[1] = 2; },
     bad_shape("cachestarts.strides[1]", 2, 1)},
    {"slots not contiguous", kTokens, [](BatchCase& c) { c.batch.cachestarts.strides[0] = 2; },
     bad_shape("cachestarts.strides[0]", 2, 1)},
    {"row stride below 0", kPages, [](BatchCase& c) { c.batch.cachestarts.strides[0] = -3; },
     bad_shape("cachestarts.strides[0]", -3, 0)},
    {"row stride beyond 64-bit bytes", kPages, [](BatchCase& c) { c.batch.cachestarts.strides[0] = kMost / 8; },
     bad_shape("cachestarts.strides[0]", kMost / 8, (kMost / 8 - 1) / 2)},
    {"CSR table with two axes", kPages, [](BatchCase& c) { c.rowstarts = {0, 3, 6, 9}, c.bind(); },
     bad_shape("cachestarts.shape[0]", 3, 2)},
    {"row_index of a CSR table", kPages,
     [](BatchCase& c) { c.rowstarts = {0, 3, 6, 9}, c.row_index = {0, 1, 2}, c.set_table(c.table, {9}); },
     bad_argument("row_index")},
    {"rowstarts of offsets", kOffset, [](BatchCase& c) { c.rowstarts = {0, 1, 2, 3}, c.bind(); },
     bad_argument("rowstarts")},
    {"row_index of a token table", kTokens, [](BatchCase& c) { c.row_index = {0, 1, 2}, c.bind(); },
     bad_argument("row_index")},
};

}  // namespace

constinit const std::span<const BatchMisuse> scalar_misuses = kScalarMisuses;
constinit const std::span<const BatchMisuse> pointer_misuses = kPointerMisuses;
constinit const std::span<const BatchMisuse> table_misuses = kTableMisuses;

TEST_CASE("scalars out of range") {
    expect_misuses(scalar_misuses, KVJIT_CHECK_NONE);
}
TEST_CASE("null and misaligned arrays, bad totals") {
    expect_misuses(pointer_misuses, KVJIT_CHECK_NONE);
}
TEST_CASE("shape of the table") {
    expect_misuses(table_misuses, KVJIT_CHECK_NONE);
}

TEST_CASE("the outline is checked without a look at arrays that may be a device's") {
    const auto* elsewhere = reinterpret_cast<const std::int64_t*>(std::uintptr_t{4096});
    for (const char* spec : {kOffset, kTokens, kPages, kBlocks, kStore, kDense}) {
        CAPTURE(spec);
        BatchCase c(spec);
        c.batch.seqstarts = c.batch.kvstarts = c.batch.start_pos = elsewhere;
        expect_accepted(rt::check_batch_scalars(c.spec, c.batch, {KVJIT_CHECK_FULL}));
    }
}

}  // namespace kvjit::test
