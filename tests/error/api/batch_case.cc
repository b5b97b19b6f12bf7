#include "batch_case.h"

#include <numeric>
#include <string>

namespace kvjit::test {
namespace {

/// Where the operator knows no group, 2 is left out.
CallShape shape_of(std::string_view text) {
    const bool grouped = text.find("Attention") != text.npos;
    const kvjit_spec spec = parse_spec(std::string(text) + ",head_dim=16,t1=f32" + (grouped ? ",group=2" : ""));
    return {spec, {1, 3, 2}, {6, 3, 9}, 2, 2};
}

}  // namespace

BatchCase::BatchCase(std::string_view spec_text) : IndexArrays(shape_of(spec_text)) {
    batch.num_heads = 4;
    if (spec.has_window) batch.window_left = 1;
    if (spec.has_soft_cap) batch.soft_cap = 30;
    const bool blocks = spec.cache_mode == KVJIT_BLOCK_TABLE, sequences = spec.cache_mode == KVJIT_SEQUENCE_TABLE;
    const bool pointers = spec.cache_mode == KVJIT_BLOCK_POINTERS;
    batch.max_tokens = blocks || pointers ? 0 : sequences ? 16 : 64;
    batch.num_blocks = blocks || sequences ? 8 : 0;
    if (spec.cache_mode == KVJIT_OFFSET) set_table({0, 20, 40}, {3});
    if (spec.cache_mode == KVJIT_TOKEN_TABLE) {
        Numbers slots(18);
        std::iota(slots.rbegin(), slots.rend(), 30);
        set_table(slots, {18});
    }
    if (spec.cache_mode == KVJIT_PAGE_TABLE) set_table({0, 4, -1, 8, -1, -1, 13, 17, 25}, {3, 3});
    if (blocks) set_table({0, 1, -1, 2, -1, -1, 3, 5, 7}, {3, 3});
    if (sequences) set_table({6, 0, 3}, {3});
    if (pointers) set_block_tables();
}

void BatchCase::set_block_tables() {
    const auto table_of = [](const BlockMemory& blocks) {
        const auto at = [&](std::int64_t block) { return blocks.address(block); };
        return Numbers{at(0), at(1), -1, at(2), 0, -1, at(3), at(5), at(7)};
    };
    set_table(table_of(code_blocks), {3, 3});
    if (spec.quant_bit != 0) set_scales(table_of(scale_blocks));
}

std::vector<std::byte> TensorsCase::snapshot() const {
    std::vector<std::byte> all = CallTensors::snapshot();
    for (const BlockMemory* blocks : {&code_blocks, &scale_blocks})
        all.insert(all.end(), blocks->memory.begin(), blocks->memory.end());
    return all;
}

}  // namespace kvjit::test
