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
    const bool blocks = spec.cache_mode == KVJIT_BLOCK_TABLE;
    batch.max_tokens = blocks ? 0 : 64;
    batch.num_blocks = blocks ? 8 : 0;
    if (spec.cache_mode == KVJIT_OFFSET) set_table({0, 20, 40}, {3});
    if (spec.cache_mode == KVJIT_TOKEN_TABLE) {
        std::vector<std::int64_t> slots(18);
        std::iota(slots.rbegin(), slots.rend(), 30);
        set_table(slots, {18});
    }
    if (spec.cache_mode == KVJIT_PAGE_TABLE) set_table({0, 4, -1, 8, -1, -1, 13, 17, 25}, {3, 3});
    if (blocks) set_table({0, 1, -1, 2, -1, -1, 3, 5, 7}, {3, 3});
    bind();
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

}  // namespace kvjit::test
