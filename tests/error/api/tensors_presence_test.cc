// Which tensors an operator takes, and that what it writes begins where nothing else does.
#include "tensors_misuse.h"

namespace kvjit::test {
namespace {

constexpr TensorsMisuse kMissing[] = {
    {"query", kAttend, [](TensorsCase& c) { c.tensors.query = {}; }, bad_argument("query")},
    {"current_key alone", kStore4, [](TensorsCase& c) { c.tensors.current_value = {}; }, bad_argument("current_value")},
    {"current_value alone", kAttend, [](TensorsCase& c) { c.tensors.current_key = {}; }, bad_argument("current_key")},
    {"cache", kStorePlain, [](TensorsCase& c) { c.tensors.cache = {}; }, bad_argument("cache")},
    {"scale of a quantised cache", kAttendBlocks, [](TensorsCase& c) { c.tensors.scale = {}; }, bad_argument("scale")},
    {"attn_mask that the spec has", kDenseMask2, [](TensorsCase& c) { c.tensors.attn_mask = {}; },
     bad_argument("attn_mask")},
    {"key", kDensePlain, [](TensorsCase& c) { c.tensors.key = {}; }, bad_argument("key")},
    {"value", kDensePlain, [](TensorsCase& c) { c.tensors.value = {}; }, bad_argument("value")},
    {"partial_output", kMergeParts, [](TensorsCase& c) { c.tensors.partial_output = {}; },
     bad_argument("partial_output")},
    {"partial_lse", kMergeParts, [](TensorsCase& c) { c.tensors.partial_lse = {}; }, bad_argument("partial_lse")},
    {"attn_output", kAttendBlocks, [](TensorsCase& c) { c.tensors.attn_output = {}; }, bad_argument("attn_output")},
};

constexpr TensorsMisuse kUnwanted[] = {
    {"query of a store", kStore4, [](TensorsCase& c) { c.tensors.query = c.tensor(KVJIT_F32, {6, 4, 16}); },
     bad_argument("query")},
    {"new keys of dense attention", kDensePlain,
     [](TensorsCase& c) { c.tensors.current_key = c.tensor(KVJIT_F32, {6, 2, 16}); }, bad_argument("current_key")},
    {"cache of dense attention", kDensePlain, [](TensorsCase& c) { c.tensors.cache = c.tensor(KVJIT_F32, {64}); },
     bad_argument("cache")},
    {"scale of a plain cache", kStorePlain, [](TensorsCase& c) { c.tensors.scale = c.tensor(KVJIT_F32, {64}); },
     bad_argument("scale")},
    {"mask that the spec lacks", kAttend, [](TensorsCase& c) { c.tensors.attn_mask = c.tensor(KVJIT_F32, {6, 18}); },
     bad_argument("attn_mask")},
    {"key of cache attention", kAttend, [](TensorsCase& c) { c.tensors.key = c.tensor(KVJIT_F32, {18, 2, 16}); },
     bad_argument("key")},
    {"attn_output of a store", kStore4, [](TensorsCase& c) { c.tensors.attn_output = c.tensor(KVJIT_F32, {6, 4, 16}); },
     bad_argument("attn_output")},
    {"parts of attention", kDensePlain, [](TensorsCase& c) { c.tensors.partial_lse = c.tensor(KVJIT_F32, {3, 6, 4}); },
     bad_argument("partial_lse")},
    {"lse of a store", kStorePlain, [](TensorsCase& c) { c.tensors.lse = c.tensor(KVJIT_F32, {6, 4}); },
     bad_argument("lse")},
    {"a pointer without rank", kStorePlain, [](TensorsCase& c) { c.tensors.query.data = &c; }, bad_argument("query")},
};

// A word that a newer header may give a meaning, in a tensor that is there or not, taken or not.
constexpr TensorsMisuse kReserved[] = {
    {"of an input", kAttend, [](TensorsCase& c) { c.tensors.query.reserved[0] = 5; },
     bad_argument("query.reserved", 5, 0)},
    {"of a missing input", kDensePlain, [](TensorsCase& c) { c.tensors.key = {}, c.tensors.key.reserved[1] = 5; },
     bad_argument("key.reserved", 5, 0)},
    {"of an optional output that is absent", kAttend,
     [](TensorsCase& c) { c.tensors.lse = {}, c.tensors.lse.reserved[0] = -5; }, bad_argument("lse.reserved", -5, 0)},
    {"of new keys that are absent", kStorePlain,
     [](TensorsCase& c) { c.tensors.current_key = {}, c.tensors.current_key.reserved[0] = 1; },
     bad_argument("current_key.reserved", 1, 0)},
    {"of a mask that the spec lacks", kAttend, [](TensorsCase& c) { c.tensors.attn_mask.reserved[1] = 5; },
     bad_argument("attn_mask.reserved", 5, 0)},
    {"of a tensor that the operator doesn't take", kStorePlain,
     [](TensorsCase& c) { c.tensors.partial_lse.reserved[1] = 5; }, bad_argument("partial_lse.reserved", 5, 0)},
};

constexpr TensorsMisuse kOverlaps[] = {
    {"attention in place", kDensePlain, [](TensorsCase& c) { c.tensors.attn_output.data = c.tensors.query.data; },
     bad_argument("attn_output")},
    {"outputs on one another", kStorePlain, [](TensorsCase& c) { c.tensors.value.data = c.tensors.key.data; },
     bad_argument("key")},
    {"new keys inside the cache", kStorePlain,
     [](TensorsCase& c) { c.tensors.cache.data = c.tensors.current_key.data; }, bad_argument("cache"), true},
    {"scales on the codes", kStore4, [](TensorsCase& c) { c.tensors.scale.data = c.tensors.cache.data; },
     bad_argument("cache"), true},
    {"merge in place", kMergeParts, [](TensorsCase& c) { c.tensors.attn_output.data = c.tensors.partial_output.data; },
     bad_argument("attn_output")},
    {"lse on the parts", kMergeParts, [](TensorsCase& c) { c.tensors.lse.data = c.tensors.partial_lse.data; },
     bad_argument("lse")},
};

constexpr TensorsMisuse kLayers[] = {
    {"layer below 0", kAttend, [](TensorsCase& c) { c.layer_idx = -1; }, bad_argument("layer_idx", -1, 2)},
    {"layer past the last", kStore4, [](TensorsCase& c) { c.layer_idx = 2; }, bad_argument("layer_idx", 2, 2)},
};

}  // namespace

constinit const std::span<const TensorsMisuse> missing_tensors = kMissing;
constinit const std::span<const TensorsMisuse> unwanted_tensors = kUnwanted;
constinit const std::span<const TensorsMisuse> overlapping_tensors = kOverlaps;
constinit const std::span<const TensorsMisuse> layer_misuses = kLayers;

TEST_CASE("missing tensors") {
    expect_misuses(missing_tensors);
}
TEST_CASE("tensors that the operator doesn't take") {
    expect_misuses(unwanted_tensors);
}
TEST_CASE("words that are reserved") {
    expect_misuses(kReserved);
}
TEST_CASE("outputs that begin where another tensor begins") {
    expect_misuses(overlapping_tensors);
}
TEST_CASE("layers outside the cache") {
    expect_misuses(layer_misuses);
}

}  // namespace kvjit::test
