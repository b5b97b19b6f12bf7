// Tensors that must not be refused.
#include "tensors_misuse.h"

namespace kvjit::test {
namespace {

struct Legal {
    std::string_view name;
    std::string_view spec;
    void (*change)(TensorsCase&);
};

constexpr Legal kLegal[] = {
    {"attend", kAttend, [](TensorsCase&) {}},
    {"attend over blocks", kAttendBlocks, [](TensorsCase&) {}},
    {"store int4", kStore4, [](TensorsCase&) {}},
    {"dense with a mask", kDenseMask2, [](TensorsCase&) {}},
    {"dense with a mask a head", kDenseMask3, [](TensorsCase&) {}},
    {"merge", kMergeParts, [](TensorsCase&) {}},
    {"one element a scale row, its stride is never used", "op=KeyValueCache,quant_bit=8,quant_group=16",
     [](TensorsCase& c) { c.tensors.scale.strides[4] = 7; }},
    {"nothing to store", kAttend, [](TensorsCase& c) { c.tensors.current_key = c.tensors.current_value = {}; }},
    {"no lse", kDensePlain, [](TensorsCase& c) { c.tensors.lse = {}; }},
    {"store only", kStore4, [](TensorsCase& c) { c.tensors.key = c.tensors.value = {}; }},
    {"values only", kStorePlain, [](TensorsCase& c) { c.tensors.key = {}; }},
    {"more query rows than S", kAttend,
     [](TensorsCase& c) { c.tensors.query.shape[0] = c.tensors.attn_output.shape[0] = c.tensors.lse.shape[0] = 64; }},
    {"more key rows than K", kDensePlain, [](TensorsCase& c) { c.tensors.key.shape[0] = 32; }},
    {"padded query rows", kAttend, [](TensorsCase& c) { c.tensors.query.strides[0] = 1000; }},
    {"wide mask", kDenseMask2,
     [](TensorsCase& c) { c.tensors.attn_mask.shape[1] = 24, c.tensors.attn_mask.strides[0] = 24; }},
    {"one mask row for all queries", kDenseMask2, [](TensorsCase& c) { c.tensors.attn_mask.strides[0] = 0; }},
    {"one key head for all", kDensePlain, [](TensorsCase& c) { c.tensors.key.strides[1] = 0; }},
    {"key is value", kDensePlain, [](TensorsCase& c) { c.tensors.value = c.tensors.key; }},
    {"transposed output", kDensePlain,
     [](TensorsCase& c) { c.tensors.attn_output.strides[0] = 16, c.tensors.attn_output.strides[1] = 96; }},
    {"transposed lse", kDensePlain, [](TensorsCase& c) { c.tensors.lse.strides[0] = 1, c.tensors.lse.strides[1] = 6; }},
    {"values in memory before keys", kAttend, [](TensorsCase& c) { c.tensors.cache.strides[1] = -100000; }},
    {"keys and values as two views of one pool", "op=KeyValueCache,cache_mode=block_table,page_size=4,layout=2NTHD",
     [](TensorsCase& c) {
         c.batch.num_layers = 1;
         c.tensors.cache.strides[0] = 2 * 4 * 2 * 16;
         c.layer_idx = 0;
     }},
    {"dense attention has no layers", kDensePlain, [](TensorsCase& c) { c.layer_idx = 31; }},
    {"no sequences, nothing given", kAttend, [](TensorsCase& c) { c.batch.batch_size = 0, c.tensors = {}; }},
    {"no tokens, null pointers", kDensePlain,
     [](TensorsCase& c) {
         c.set_lengths({0, 0}, {0, 0});
         for (auto member : {&kvjit_tensors::query, &kvjit_tensors::key, &kvjit_tensors::value,
                             &kvjit_tensors::attn_output, &kvjit_tensors::lse}) {
             (c.tensors.*member).shape[0] = 0;
             (c.tensors.*member).data = nullptr;
         }
     }},
};

TEST_CASE("legal tensors") {
    for (const Legal& legal : kLegal) {
        CAPTURE(legal.name);
        TensorsCase c(legal.spec);
        legal.change(c);
        expect_accepted(check(c));
    }
}

}  // namespace
}  // namespace kvjit::test
