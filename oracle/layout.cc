#include "oracle/layout.h"

#include <algorithm>

#include "oracle/elements.h"

namespace kvjit::oracle {

std::vector<LayoutAxis> layout_axes(std::string_view layout) {
    std::vector<LayoutAxis> axes;
    axes.reserve(layout.size());
    std::int64_t elements = 1, tokens = 1;  // of an inner part
    for (std::size_t i = 0; i < layout.size(); ++i) {
        axes.push_back({layout[i], 1});
        if (layout[i] != 'd' && layout[i] != 't') continue;
        std::int64_t& extent = layout[i] == 'd' ? elements : tokens;
        for (extent = 0; i + 1 < layout.size() && layout[i + 1] >= '0' && layout[i + 1] <= '9'; ++i)
            extent = 10 * extent + (layout[i + 1] - '0');
    }
    for (LayoutAxis& axis : axes) {
        if (axis.name == 'D' || axis.name == 'd') axis.inner = elements;
        if (axis.name == 'T' || axis.name == 't') axis.inner = tokens;
    }
    return axes;
}

std::int64_t offset_of(const CacheElement& element, const std::vector<LayoutAxis>& axes, const std::int64_t* strides) {
    const auto index = [&](const LayoutAxis& axis) {
        switch (axis.name) {
            case 'N':
                return element.block;
            case 'T':
                return element.token / axis.inner;
            case 't':
                return element.token % axis.inner;
            case 'L':
                return element.layer;
            case '2':
                return element.part;
            case 'H':
                return element.head;
            case 'D':
                return element.d / axis.inner;
            default:
                return element.d % axis.inner;
        }
    };
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < axes.size(); ++i) offset += index(axes[i]) * strides[i];
    return offset;
}

bool has_cache(const kvjit_spec& spec) {
    return spec.op == KVJIT_OP_KEY_VALUE_CACHE || spec.op == KVJIT_OP_MULTI_HEAD_CACHE_ATTENTION;
}

bool has_pages(const kvjit_spec& spec) {
    return spec.cache_mode == KVJIT_PAGE_TABLE || spec.cache_mode == KVJIT_BLOCK_TABLE ||
           spec.cache_mode == KVJIT_BLOCK_POINTERS;
}

bool is_apart(const kvjit_spec& spec) {
    return std::ranges::none_of(layout_axes(spec.layout), [](const LayoutAxis& axis) { return axis.name == '2'; });
}

std::string_view value_layout(const kvjit_spec& spec) {
    return spec.value_layout[0] == 0 ? spec.layout : spec.value_layout;
}

RowType code_row(const kvjit_spec& spec) {
    if (spec.quant_bit == 8) return {KVJIT_I8, spec.head_dim};
    if (spec.quant_bit == 4) return {KVJIT_U8, spec.head_dim / 2};
    return {spec.t2 == KVJIT_AUTO ? spec.t1 : spec.t2, spec.head_dim};
}

RowType scale_row(const kvjit_spec& spec) {
    return {spec.t3 == KVJIT_AUTO ? spec.t1 : spec.t3, spec.head_dim / spec.quant_group};
}

std::size_t bytes_of(const RowType& row) {
    return static_cast<std::size_t>(row.elements) * bytes_of(row.dtype);
}

std::vector<std::int64_t> cache_shape(const kvjit_spec& spec, const kvjit_batch& batch, std::string_view layout,
                                      std::int64_t row_elements) {
    const bool blocks = spec.cache_mode == KVJIT_BLOCK_TABLE || spec.cache_mode == KVJIT_BLOCK_POINTERS;
    const std::int64_t tokens = blocks ? spec.page_size : batch.max_tokens;
    std::vector<std::int64_t> shape;
    for (const auto& [axis, inner] : layout_axes(layout)) {
        if (axis == 'N') shape.push_back(batch.num_blocks);
        if (axis == 'T') shape.push_back(tokens / inner);
        if (axis == 'L') shape.push_back(batch.num_layers);
        if (axis == '2') shape.push_back(2);
        if (axis == 'H') shape.push_back(batch.num_kv_heads);
        if (axis == 'D') shape.push_back(row_elements / inner);
        if (axis == 'd' || axis == 't') shape.push_back(inner);
    }
    return shape;
}

}  // namespace kvjit::oracle
