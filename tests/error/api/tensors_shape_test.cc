// Types, ranks, extents, pointers and strides of a run's tensors.
#include <limits>

#include "tensors_misuse.h"

namespace kvjit::test {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

void move_by(kvjit_tensor& tensor, std::int64_t bytes) {
    tensor.data = static_cast<char*>(tensor.data) + bytes;
}

constexpr TensorsMisuse kTypes[] = {
    {"query", kAttend, [](TensorsCase& c) { c.tensors.query.dtype = KVJIT_F16; },
     bad_dtype("query.dtype", KVJIT_F16, KVJIT_F32)},
    {"plain cache", kStorePlain, [](TensorsCase& c) { c.tensors.cache.dtype = KVJIT_I8; },
     bad_dtype("cache.dtype", KVJIT_I8, KVJIT_F32)},
    {"int8 cache", kAttendBlocks, [](TensorsCase& c) { c.tensors.cache.dtype = KVJIT_U8; },
     bad_dtype("cache.dtype", KVJIT_U8, KVJIT_I8)},
    {"int4 cache", kStore4, [](TensorsCase& c) { c.tensors.cache.dtype = KVJIT_I8; },
     bad_dtype("cache.dtype", KVJIT_I8, KVJIT_U8)},
    {"scale", kAttendBlocks, [](TensorsCase& c) { c.tensors.scale.dtype = KVJIT_F32; },
     bad_dtype("scale.dtype", KVJIT_F32, KVJIT_F16)},
    {"lse is always f32", "op=MultiHeadAttention", [](TensorsCase& c) { c.tensors.lse.dtype = KVJIT_F16; },
     bad_dtype("lse.dtype", KVJIT_F16, KVJIT_F32)},
    {"no type at all", kMergeParts, [](TensorsCase& c) { c.tensors.partial_output.dtype = -1; },
     bad_dtype("partial_output.dtype", -1, KVJIT_F32)},
};

constexpr TensorsMisuse kExtents[] = {
    {"rank of query", kDensePlain, [](TensorsCase& c) { c.tensors.query.rank = 2; }, bad_shape("query.rank", 2, 3)},
    {"rank of cache", kAttendBlocks, [](TensorsCase& c) { c.tensors.cache.rank = 5; }, bad_shape("cache.rank", 5, 6)},
    {"rank below 0", kAttend, [](TensorsCase& c) { c.tensors.query.rank = -1; }, bad_shape("query.rank", -1, 3)},
    {"rank of mask", kDenseMask3, [](TensorsCase& c) { c.tensors.attn_mask.rank = 2; },
     bad_shape("attn_mask.rank", 2, 3)},
    {"fewer rows than S", kAttend, [](TensorsCase& c) { c.tensors.query.shape[0] = 5; },
     bad_shape("query.shape[0]", 5, 6)},
    {"rows below 0", kAttend, [](TensorsCase& c) { c.tensors.attn_output.shape[0] = -6; },
     bad_shape("attn_output.shape[0]", -6, 6)},
    {"another H", kDensePlain, [](TensorsCase& c) { c.tensors.query.shape[1] = 2; }, bad_shape("query.shape[1]", 2, 4)},
    {"another D", kDensePlain, [](TensorsCase& c) { c.tensors.query.shape[2] = 32; },
     bad_shape("query.shape[2]", 32, 16)},
    {"another Hkv", kStorePlain, [](TensorsCase& c) { c.tensors.current_key.shape[1] = 4; },
     bad_shape("current_key.shape[1]", 4, 2)},
    {"fewer rows than K", kDensePlain, [](TensorsCase& c) { c.tensors.value.shape[0] = 17; },
     bad_shape("value.shape[0]", 17, 18)},
    {"heads not repeated", kStorePlain, [](TensorsCase& c) { c.batch.num_repeat = 3; },
     bad_shape("key.shape[1]", 2, 6)},
    {"cache of other layers", kAttend, [](TensorsCase& c) { c.tensors.cache.shape[0] = 3; },
     bad_shape("cache.shape[0]", 3, 2)},
    {"cache without values", kAttend, [](TensorsCase& c) { c.tensors.cache.shape[1] = 1; },
     bad_shape("cache.shape[1]", 1, 2)},
    {"cache of other tokens", kAttend, [](TensorsCase& c) { c.tensors.cache.shape[3] = 63; },
     bad_shape("cache.shape[3]", 63, 64)},
    {"cache of other blocks", kAttendBlocks, [](TensorsCase& c) { c.tensors.cache.shape[0] = 9; },
     bad_shape("cache.shape[0]", 9, 8)},
    {"cache of other blocks' tokens", kAttendBlocks, [](TensorsCase& c) { c.tensors.cache.shape[3] = 8; },
     bad_shape("cache.shape[3]", 8, 4)},
    {"int4 rows of D bytes", kStore4, [](TensorsCase& c) { c.tensors.cache.shape[4] = 16; },
     bad_shape("cache.shape[4]", 16, 8)},
    {"scales of another group", kStore4, [](TensorsCase& c) { c.tensors.scale.shape[4] = 16; },
     bad_shape("scale.shape[4]", 16, 2)},
    {"mask narrower than K", kDenseMask2, [](TensorsCase& c) { c.tensors.attn_mask.shape[1] = 17; },
     bad_shape("attn_mask.shape[1]", 17, 18)},
    {"mask with too few rows", kDenseMask3, [](TensorsCase& c) { c.tensors.attn_mask.shape[1] = 5; },
     bad_shape("attn_mask.shape[1]", 5, 6)},
    {"mask of other heads", kDenseMask3, [](TensorsCase& c) { c.tensors.attn_mask.shape[0] = 1; },
     bad_shape("attn_mask.shape[0]", 1, 4)},
    {"no parts", kMergeParts, [](TensorsCase& c) { c.tensors.partial_output.shape[0] = 0; },
     bad_shape("partial_output.shape[0]", 0, 1)},
    {"parts that disagree", kMergeParts, [](TensorsCase& c) { c.tensors.partial_lse.shape[0] = 2; },
     bad_shape("partial_lse.shape[0]", 2, 3)},
    {"parts with fewer rows than S", kMergeParts, [](TensorsCase& c) { c.seqstarts[3] = 7; },
     bad_shape("partial_output.shape[1]", 6, 7)},
    {"lse of parts with fewer rows than S", kMergeParts, [](TensorsCase& c) { c.tensors.partial_lse.shape[1] = 5; },
     bad_shape("partial_lse.shape[1]", 5, 6)},
    {"merged rows fewer than S", kMergeParts, [](TensorsCase& c) { c.tensors.attn_output.shape[0] = 5; },
     bad_shape("attn_output.shape[0]", 5, 6)},
    {"merged lse fewer than S", kMergeParts, [](TensorsCase& c) { c.tensors.lse.shape[0] = 5; },
     bad_shape("lse.shape[0]", 5, 6)},
    {"lse of other heads", kDensePlain, [](TensorsCase& c) { c.tensors.lse.shape[1] = 2; },
     bad_shape("lse.shape[1]", 2, 4)},
};

constexpr TensorsMisuse kPointers[] = {
    {"null query", kAttend, [](TensorsCase& c) { c.tensors.query.data = nullptr; }, bad_argument("query.data")},
    {"null cache", kStore4, [](TensorsCase& c) { c.tensors.cache.data = nullptr; }, bad_argument("cache.data")},
    {"query misaligned", kAttend, [](TensorsCase& c) { move_by(c.tensors.query, 2); },
     bad_argument("query.data", 2, 4)},
    {"scale misaligned", kAttendBlocks, [](TensorsCase& c) { move_by(c.tensors.scale, 3); },
     bad_argument("scale.data", 1, 2)},
    {"value misaligned where only query is not", "op=MultiHeadAttention",
     [](TensorsCase& c) { move_by(c.tensors.value, 1); }, bad_argument("value.data", 1, 4)},
    {"mask misaligned", kDenseMask2, [](TensorsCase& c) { move_by(c.tensors.attn_mask, 2); },
     bad_argument("attn_mask.data", 2, 4)},
};

constexpr TensorsMisuse kStrides[] = {
    {"D not contiguous", kAttend, [](TensorsCase& c) { c.tensors.query.strides[2] = 2; },
     bad_shape("query.strides[2]", 2, 1)},
    {"D of the cache not contiguous", kAttend, [](TensorsCase& c) { c.tensors.cache.strides[4] = 0; },
     bad_shape("cache.strides[4]", 0, 1)},
    {"mask columns not contiguous", kDenseMask2, [](TensorsCase& c) { c.tensors.attn_mask.strides[1] = 6; },
     bad_shape("attn_mask.strides[1]", 6, 1)},
    {"stride below 0", kDensePlain, [](TensorsCase& c) { c.tensors.key.strides[0] = -32; },
     bad_shape("key.strides[0]", -32, 0)},
    {"token stride of the cache below 0", kAttend, [](TensorsCase& c) { c.tensors.cache.strides[3] = -16; },
     bad_shape("cache.strides[3]", -16, 0)},
    {"stride beyond 64-bit bytes", kDensePlain, [](TensorsCase& c) { c.tensors.query.strides[0] = kMost; },
     bad_shape("query.strides[0]", kMost, kMost / 4)},
    {"span beyond 64-bit bytes", kDensePlain, [](TensorsCase& c) { c.tensors.query.strides[0] = kMost / 16; },
     bad_shape("query.strides[0]", kMost / 16, (kMost / 4 - 1) / 5)},
    {"more rows than 64-bit bytes hold at any stride", kDensePlain,
     [](TensorsCase& c) { c.tensors.query.shape[0] = kMost; },
     bad_shape("query.shape[0]", kMost, (kMost / 4 - 1) / 64 + 1)},
    {"span of an int8 cache beyond 64-bit bytes",
     "op=KeyValueCache,cache_mode=offset,layout=L2HTD,quant_bit=8,quant_group=8",
     [](TensorsCase& c) { c.tensors.cache.strides[3] = 1'000'000'000'000'000'000; },
     bad_shape("cache.strides[3]", 1'000'000'000'000'000'000, (kMost - 7169) / 63)},
    {"output rows on one another", kAttend, [](TensorsCase& c) { c.tensors.attn_output.strides[0] = 0; },
     bad_shape("attn_output.strides[0]", 0, 16)},
    {"output rows that overlap by an element", kDensePlain,
     [](TensorsCase& c) { c.tensors.attn_output.strides[0] = 63; }, bad_shape("attn_output.strides[0]", 63, 64)},
    {"lse heads on one another", kDensePlain, [](TensorsCase& c) { c.tensors.lse.strides[1] = 0; },
     bad_shape("lse.strides[1]", 0, 1)},
    {"layers of the cache on one another", kAttend, [](TensorsCase& c) { c.tensors.cache.strides[0] = 0; },
     bad_shape("cache.strides[0]", 0, 16), true},
    {"layers of the cache inside a row", kAttend, [](TensorsCase& c) { c.tensors.cache.strides[0] = 1; },
     bad_shape("cache.strides[0]", 1, 16), true},
    {"layers of the cache as far apart as tokens", kAttend,
     [](TensorsCase& c) { c.tensors.cache.strides[0] = c.tensors.cache.strides[3]; },
     bad_shape("cache.strides[0]", 16, 16 * 64), true},
    {"output heads inside a row", kDensePlain, [](TensorsCase& c) { c.tensors.attn_output.strides[1] = 1; },
     bad_shape("attn_output.strides[1]", 1, 16)},
    {"values on keys", kAttend, [](TensorsCase& c) { c.tensors.cache.strides[1] = 0; },
     bad_shape("cache.strides[1]", 0, 16), true},
    {"value rows inside key rows", kStorePlain, [](TensorsCase& c) { c.tensors.cache.strides[2] = -15; },
     bad_shape("cache.strides[2]", -15, 16), true},
};

}  // namespace

constinit const std::span<const TensorsMisuse> type_misuses = kTypes;
constinit const std::span<const TensorsMisuse> extent_misuses = kExtents;
constinit const std::span<const TensorsMisuse> tensor_pointer_misuses = kPointers;
constinit const std::span<const TensorsMisuse> stride_misuses = kStrides;

TEST_CASE("element types") {
    expect_misuses(type_misuses);
}
TEST_CASE("ranks and extents") {
    expect_misuses(extent_misuses);
}
TEST_CASE("null and misaligned tensors") {
    expect_misuses(tensor_pointer_misuses);
}
TEST_CASE("strides") {
    expect_misuses(stride_misuses);
}
TEST_CASE("who takes the limit of an overlapping stride, time and again, ends at a tensor that is accepted") {
    constexpr kvjit_tensor kvjit_tensors::* kWritten[] = {&kvjit_tensors::cache, &kvjit_tensors::attn_output};
    for (const auto member : kWritten) {
        for (int axis = 0; axis < 2; ++axis) {
            TensorsCase c(kAttend);
            kvjit_tensor& tensor = c.tensors.*member;
            tensor.strides[axis] = 1;
            gen::Result<void> result = check(c);
            for (int turn = 0; turn < KVJIT_MAX_RANK && !result; ++turn, result = check(c)) {
                const std::string& blamed = result.error().argument;
                CAPTURE(blamed);
                const int index = blamed[blamed.find('[') + 1] - '0';
                REQUIRE(index < tensor.rank - 1);
                tensor.strides[index] = result.error().limit;
            }
            expect_accepted(result);
        }
    }
}

}  // namespace kvjit::test
