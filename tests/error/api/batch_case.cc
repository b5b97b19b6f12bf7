#include "batch_case.h"

#include <algorithm>
#include <numeric>
#include <string>

#include <doctest/doctest.h>

namespace kvjit::test {
namespace {

/// Where the operator knows no group, 2 is left out.
gen::KernelSpec spec_of(std::string_view text) {
    const bool grouped = text.find("Attention") != text.npos;
    const auto spec = gen::parse_spec(std::string(text) + ",head_dim=16,t1=f32" + (grouped ? ",group=2" : ""));
    REQUIRE_MESSAGE(spec.has_value(), text);
    return *spec;
}

std::vector<std::int64_t> sums(std::initializer_list<std::int64_t> lengths) {
    std::vector<std::int64_t> starts{0};
    std::inclusive_scan(lengths.begin(), lengths.end(), std::back_inserter(starts));
    return starts;
}

}  // namespace

BatchCase::BatchCase(std::string_view spec_text) : spec(spec_of(spec_text)), batch{} {
    batch.struct_size = sizeof batch;
    batch.batch_size = 3;
    batch.num_heads = 4;
    batch.num_kv_heads = 2;
    batch.num_layers = 2;
    batch.num_repeat = 1;
    batch.window_left = spec.has_window ? 1 : -1;
    batch.window_right = -1;
    batch.soft_cap = spec.has_soft_cap ? 30 : 0;
    const bool blocks = spec.cache_mode == KVJIT_BLOCK_TABLE, sequences = spec.cache_mode == KVJIT_SEQUENCE_TABLE;
    const bool pointers = spec.cache_mode == KVJIT_BLOCK_POINTERS;
    batch.max_tokens = blocks || pointers ? 0 : sequences ? 16 : 64;
    batch.num_blocks = blocks || sequences ? 8 : 0;
    if (spec.cache_mode == KVJIT_OFFSET) set_table({0, 20, 40}, {3});
    if (spec.cache_mode == KVJIT_TOKEN_TABLE) {
        std::vector<std::int64_t> slots(18);
        std::iota(slots.rbegin(), slots.rend(), 30);
        set_table(slots, {18});
    }
    if (spec.cache_mode == KVJIT_PAGE_TABLE) set_table({0, 4, -1, 8, -1, -1, 13, 17, 25}, {3, 3});
    if (blocks) set_table({0, 1, -1, 2, -1, -1, 3, 5, 7}, {3, 3});
    if (sequences) set_table({6, 0, 3}, {3});
    if (pointers) set_block_tables();
    bind();
}

/// Of float32 elements, or of int8 codes with float32 scales.
void BatchCase::set_block_tables() {
    const std::int64_t rows = 2 * batch.num_layers * spec.page_size * batch.num_kv_heads;
    const bool quantised = spec.quant_bit != 0;
    code_blocks.make(rows * 16 * (quantised ? 1 : 4));
    const auto at = [](const Blocks& blocks, std::int64_t block) { return blocks.address(block); };
    const auto table_of = [&](const Blocks& blocks) {
        return std::vector<std::int64_t>{at(blocks, 0), at(blocks, 1), -1,           at(blocks, 2), 0, -1,
                                         at(blocks, 3), at(blocks, 5), at(blocks, 7)};
    };
    set_table(table_of(code_blocks), {3, 3});
    if (!quantised) return;
    scale_blocks.make(rows * (16 / spec.quant_group) * 4);
    set_scales(table_of(scale_blocks));
}

constexpr std::int64_t kRoom = 64, kAround = 1 << 13, kAlignment = 256;

void BatchCase::Blocks::make(std::int64_t block_bytes) {
    bytes = block_bytes;
    memory.resize(static_cast<std::size_t>(kRoom * bytes + 2 * kAround));
}

std::int64_t BatchCase::Blocks::address(std::int64_t block) const {
    const auto begin = reinterpret_cast<std::intptr_t>(memory.data()) + kAround / 2;
    return (begin + kAlignment - 1) / kAlignment * kAlignment + block * bytes;
}

void BatchCase::bind() {
    const auto data = [](auto& values) { return values.empty() ? nullptr : values.data(); };
    narrow.clear();
    const auto starts = [&](const std::vector<std::int64_t>& values) -> const void* {
        if (values.empty() || spec.starts_type == KVJIT_I64) return data(values);
        narrow.emplace_back(values.begin(), values.end());
        return narrow.back().data();
    };
    batch.seqstarts = starts(seqstarts);
    batch.kvstarts = starts(kvstarts);
    batch.start_pos = starts(start_pos);
    batch.rowstarts = starts(rowstarts);
    batch.row_index = starts(row_index);
    batch.alibi_slopes = data(slopes);
    table32.assign(table.begin(), table.end());
    const bool narrow_table = spec.index_type == KVJIT_I32;
    batch.cachestarts.data = narrow_table ? static_cast<void*>(data(table32)) : data(table);
    if (!scales.empty()) batch.scalestarts.data = data(scales);
}

void BatchCase::set_lengths(std::initializer_list<std::int64_t> n, std::initializer_list<std::int64_t> m) {
    batch.batch_size = static_cast<std::int64_t>(n.size());
    seqstarts = sums(n);
    kvstarts = sums(m);
    start_pos.clear();
    std::transform(m.begin(), m.end(), n.begin(), std::back_inserter(start_pos), std::minus<>());
    bind();
}

void BatchCase::set_table(std::vector<std::int64_t> entries, std::vector<std::int64_t> shape) {
    table = std::move(entries);
    kvjit_tensor& tensor = batch.cachestarts;
    tensor = {};
    tensor.dtype = spec.index_type;
    tensor.rank = static_cast<std::int32_t>(shape.size());
    std::ranges::copy(shape, tensor.shape);
    tensor.strides[0] = shape.size() == 2 ? shape[1] : 1;
    tensor.strides[1] = shape.size() == 2;
    bind();
}

void BatchCase::set_scales(std::vector<std::int64_t> entries) {
    scales = std::move(entries);
    batch.scalestarts = batch.cachestarts;
    bind();
}

}  // namespace kvjit::test
