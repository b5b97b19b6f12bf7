// Tensors of a cache whose keys and values lie apart, and of one whose blocks lie at addresses.
#include "tensors_misuse.h"

namespace kvjit::test {
namespace {

constexpr const char* kStoreApart = "op=KeyValueCache,cache_mode=sequence_table,layout=NLHTD";

/// Keys (8, 2, 2, 2, 2, 2, 8), values (8, 2, 2, 16, 4).
constexpr const char* kStoreCut =
    "op=KeyValueCache,cache_mode=block_table,page_size=4,layout=NHLDTt2d8,value_layout=NHLDT";
constexpr const char* kStoreMixed = "op=KeyValueCache,cache_mode=offset,layout=2LHDT";
constexpr const char* kStorePairs = "op=KeyValueCache,cache_mode=offset,layout=LTHD2";

template <kvjit_tensor kvjit_tensors::* kMember>
void leave_out(TensorsCase& c) {
    c.tensors.*kMember = {};
}

/// As large as any: nobody looks at what it is.
template <kvjit_tensor kvjit_tensors::* kMember>
void bring(TensorsCase& c) {
    c.tensors.*kMember = c.tensor(KVJIT_F32, {8, 2, 2, 4, 2, 16});
}

using Run = kvjit_tensors;

constexpr TensorsMisuse kCacheTensors[] = {
    {"no key_cache", kAttendApart, leave_out<&Run::key_cache>, bad_argument("key_cache")},
    {"no value_cache", kStoreApart, leave_out<&Run::value_cache>, bad_argument("value_cache")},
    {"no key_scale", kAttendApart, leave_out<&Run::key_scale>, bad_argument("key_scale")},
    {"no value_scale", kAttendApart, leave_out<&Run::value_scale>, bad_argument("value_scale")},
    {"key_cache beside axis 2", kAttend, bring<&Run::key_cache>, bad_argument("key_cache")},
    {"value_cache beside axis 2", kStore4, bring<&Run::value_cache>, bad_argument("value_cache")},
    {"key_scale beside axis 2", kStore4, bring<&Run::key_scale>, bad_argument("key_scale")},
    {"value_scale beside axis 2", kAttendBlocks, bring<&Run::value_scale>, bad_argument("value_scale")},
    {"cache without axis 2", kAttendApart, bring<&Run::cache>, bad_argument("cache")},
    {"scale without axis 2", kAttendApart, bring<&Run::scale>, bad_argument("scale")},
    {"key_scale of a plain cache", kStoreApart, bring<&Run::key_scale>, bad_argument("key_scale")},
    {"key_cache of dense attention", kDensePlain, bring<&Run::key_cache>, bad_argument("key_cache")},
    {"cache beside addresses", kAttendPointers, bring<&Run::cache>, bad_argument("cache")},
    {"scale beside addresses", kAttendPointers, bring<&Run::scale>, bad_argument("scale")},
    {"key_cache beside addresses", kAttendPointers, bring<&Run::key_cache>, bad_argument("key_cache")},
    {"value_cache beside addresses", kAttendPointers, bring<&Run::value_cache>, bad_argument("value_cache")},
    {"key_scale beside addresses", kAttendPointers, bring<&Run::key_scale>, bad_argument("key_scale")},
    {"value_scale beside addresses", kAttendPointers, bring<&Run::value_scale>, bad_argument("value_scale")},
    {"values in the keys' order", kAttendApart,
     [](TensorsCase& c) { c.tensors.value_cache = c.tensor(KVJIT_I8, {8, 2, 4, 2, 16}); },
     bad_shape("value_cache.shape[2]", 4, 2)},
    {"values' scales in the keys' order", kAttendApart,
     [](TensorsCase& c) { c.tensors.value_scale = c.tensor(KVJIT_F32, {8, 2, 4, 2, 2}); },
     bad_shape("value_scale.shape[2]", 4, 2)},
    {"values of fewer blocks than keys", kAttendApart, [](TensorsCase& c) { c.tensors.value_cache.shape[0] = 7; },
     bad_shape("value_cache.shape[0]", 7, 8)},
    {"sequences' blocks of other tokens", kStoreApart, [](TensorsCase& c) { c.tensors.key_cache.shape[3] = 15; },
     bad_shape("key_cache.shape[3]", 15, 16)},
    {"keys of another type", kStoreApart, [](TensorsCase& c) { c.tensors.key_cache.dtype = KVJIT_F16; },
     bad_dtype("key_cache.dtype", KVJIT_F16, KVJIT_F32)},
    {"values that begin where keys begin", kStoreApart,
     [](TensorsCase& c) { c.tensors.value_cache.data = c.tensors.key_cache.data; }, bad_argument("key_cache"), true},
    {"scales that begin where values begin", kAttendApart,
     [](TensorsCase& c) { c.tensors.key_scale.data = c.tensors.value_cache.data; }, bad_argument("value_cache"), true},
    {"keys in the order of whole rows", kStoreCut,
     [](TensorsCase& c) { c.tensors.key_cache = c.tensor(KVJIT_F32, {8, 2, 2, 4, 16}); },
     bad_shape("key_cache.rank", 5, 7)},
    {"a split axis D of whole rows", kStoreCut, [](TensorsCase& c) { c.tensors.key_cache.shape[3] = 16; },
     bad_shape("key_cache.shape[3]", 16, 2)},
    {"a split axis T of whole pages", kStoreCut, [](TensorsCase& c) { c.tensors.key_cache.shape[4] = 4; },
     bad_shape("key_cache.shape[4]", 4, 2)},
    {"pieces of other tokens", kStoreCut, [](TensorsCase& c) { c.tensors.key_cache.shape[5] = 4; },
     bad_shape("key_cache.shape[5]", 4, 2)},
    {"pieces of other elements", kStoreCut, [](TensorsCase& c) { c.tensors.key_cache.shape[6] = 4; },
     bad_shape("key_cache.shape[6]", 4, 8)},
    {"elements of a piece that are no neighbours", kStoreCut,
     [](TensorsCase& c) { c.tensors.key_cache.strides[6] = 2; }, bad_shape("key_cache.strides[6]", 2, 1)},
    {"tokens on the last axis that are no neighbours", kStoreCut,
     [](TensorsCase& c) { c.tensors.value_cache.strides[4] = 2; }, bad_shape("value_cache.strides[4]", 2, 1)},
    {"pieces of elements that overlap", kStoreCut, [](TensorsCase& c) { c.tensors.key_cache.strides[3] = 24; },
     bad_shape("key_cache.strides[3]", 24, 32), true},
    {"elements that overlap tokens", kStoreCut, [](TensorsCase& c) { c.tensors.value_cache.strides[3] = 3; },
     bad_shape("value_cache.strides[3]", 3, 4), true},
    {"values that begin inside of keys' rows", kStoreMixed,
     [](TensorsCase& c) { c.tensors.cache.strides[0] = 15 * 64; }, bad_shape("cache.strides[0]", 960, 961), true},
    {"keys and values side by side that aren't", kStorePairs, [](TensorsCase& c) { c.tensors.cache.strides[4] = 4; },
     bad_shape("cache.strides[4]", 4, 1)},
    {"a layer past the last, of two tensors", kAttendApart, [](TensorsCase& c) { c.layer_idx = 2; },
     bad_argument("layer_idx", 2, 2)},
    {"a layer past the last of blocks at addresses", kAttendPointers, [](TensorsCase& c) { c.layer_idx = 2; },
     bad_argument("layer_idx", 2, 2)},
};

}  // namespace

constinit const std::span<const TensorsMisuse> cache_tensor_misuses = kCacheTensors;

TEST_CASE("tensors of caches apart, and of none") {
    expect_misuses(cache_tensor_misuses);
}

}  // namespace kvjit::test
