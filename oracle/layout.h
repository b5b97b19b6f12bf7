// What a cache's tensors are, by the letters of its layout. Shares no code with
// the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kvjit/kvjit.h"

namespace kvjit::oracle {

/// An axis of a layout, outermost first. Of a split one and its inner part (D and d, T and t) `inner` is the extent of
/// that part; else 1.
struct LayoutAxis {
    char name;
    std::int64_t inner;
};
std::vector<LayoutAxis> layout_axes(std::string_view layout);

/// An element of a cache: of a key (part 0) or a value (1).
struct CacheElement {
    std::int64_t block, token, layer, part, head, d;
};
/// Elements from a tensor's first one to this, by the stride of each axis.
std::int64_t offset_of(const CacheElement& element, const std::vector<LayoutAxis>& axes, const std::int64_t* strides);

/// Whether the operator takes a cache.
bool has_cache(const kvjit_spec& spec);
/// Whether an entry of the table stands for page_size tokens.
bool has_pages(const kvjit_spec& spec);
/// Whether keys and values have a tensor each: the layout has no axis 2.
bool is_apart(const kvjit_spec& spec);
/// Of values where they lie apart.
std::string_view value_layout(const kvjit_spec& spec);

/// What a head's row of codes, or of their scales, consists of. int4 codes are counted as bytes of two.
struct RowType {
    int dtype;
    std::int64_t elements;
};
RowType code_row(const kvjit_spec& spec);
/// Precondition: quant_bit isn't 0.
RowType scale_row(const kvjit_spec& spec);
std::size_t bytes_of(const RowType& row);

/// One extent for each axis of `layout`: of a batch count max_tokens, num_blocks, num_layers and num_kv_heads.
std::vector<std::int64_t> cache_shape(const kvjit_spec& spec, const kvjit_batch& batch, std::string_view layout,
                                      std::int64_t row_elements);

}  // namespace kvjit::oracle
