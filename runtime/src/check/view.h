// The conditions on a tensor view, and the one check of them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "generator/error.h"
#include "kvjit/kvjit.h"

namespace kvjit::rt {

struct Axis {
    std::string_view name;  // "S", "Hkv", "D"; for messages
    std::int64_t extent;
    bool at_least;  // a longer axis is fine, too: what lies past it is neither read nor written
};

struct ViewRule {
    std::string_view name;  // the tensor's: "query"
    kvjit_dtype dtype;
    std::int32_t rank;
    std::array<Axis, KVJIT_MAX_RANK> axes;
    bool contiguous;     // the last axis has stride 1
    bool written;        // no two elements share an address
    int free_axis = -1;  // an axis whose stride may be negative and needn't nest with the others; -1: none
    std::array<int, 2> row_axes = {-1, -1};  // axes that it steps over as a whole; -1: none
    std::string_view written_unless = "";    // ends the rule that elements may not overlap
};

/// Whether the tensor was given. An absent one is all zero; an empty one has a rank.
inline bool is_present(const kvjit_tensor& tensor) {
    return tensor.data != nullptr || tensor.rank != 0;
}

/// An extent is 0, so that there is no element. The rank must have been checked.
inline bool is_empty(const kvjit_tensor& tensor) {
    return std::any_of(tensor.shape, tensor.shape + tensor.rank, [](std::int64_t extent) { return extent == 0; });
}

/// The words that a newer header may give a meaning are 0, also those of an absent tensor. Errors: KVJIT_BAD_ARGUMENT.
gen::Result<void> check_reserved(std::string_view name, const kvjit_tensor& tensor);

/// Type, rank, extents, pointer (not null unless empty, aligned to its element), strides (>= 0; spanning fewer than
/// 2^63 bytes; nested where written, that is, each axis steps over all that the shorter strides reach).
/// Errors: KVJIT_BAD_DTYPE, KVJIT_BAD_SHAPE, KVJIT_BAD_ARGUMENT; `argument` is "query.strides[1]", say.
/// Allocates on failure only. O(rank^2).
gen::Result<void> check_view(const kvjit_tensor& tensor, const ViewRule& rule);

}  // namespace kvjit::rt
