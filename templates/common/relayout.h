// Rows of a relayout: where they lie in either cache, and whether they are copied or converted (docs/semantics.md,
// section 2).
#pragma once

#include "common/abi.h"
#include "common/quant.h"
#include "common/spec_block.h"
#include "common/types.h"

namespace kvjit {

/// Rows of one format are copied as they are. Others become what load makes of them, and of that what store does.
using FromRow = CacheRow;
using ToRow = RowFormat<ToT2, ToT3, kToQuantBit, kToQuantGroup>;

/// Rows of a run, of one layer's keys or values: that of token i and head h is at first + i * token_stride +
/// h * head_stride.
struct RunPlane {
    char* first;
    i64 token_stride, head_stride;
};

/// A run in one of the caches.
struct RunPlace {
    i64 entry, scale_entry;
    i64 token;       // the first one's number in its page
    i64 token_step;  // from one to the next
};

/// Run `run` of layer `layer`, counted from the first to copy; `token`: the run's in this cache.
KVJIT_INLINE RunPlace place_of(const abi::RelayoutSide& side, i64 run, i64 layer, i64 token) {
    const i64 at = layer * side.layer_entries + run;
    return {side.entries[at], side.scales[at], token, side.token_step};
}

/// An entry may be an address: then the base is no pointer, and a sum with it none into its object.
KVJIT_INLINE RunPlane run_plane(const abi::LayerPlane& at, i64 entry, const RunPlace& place, i64 layer) {
    const abi::Plane& plane = at.plane;
    const i64 first = reinterpret_cast<i64>(plane.base) + entry * plane.page_stride + layer * at.layer_stride +
                      place.token * plane.token_stride;
    return {reinterpret_cast<char*>(first), place.token_step * plane.token_stride, plane.head_stride};
}

/// Codes and scales of a run's keys or values.
struct RunRows {
    RunPlane codes, scales;  // scales: unused in a cache that isn't quantised
};

template <class Row>
KVJIT_INLINE RunRows run_rows(const abi::RelayoutSide& side, const RunPlace& place, i64 layer, bool value) {
    RunRows rows{run_plane(value ? side.value : side.key, place.entry, place, layer), {}};
    if constexpr (Row::kQuantised)
        rows.scales = run_plane(value ? side.value_scale : side.key_scale, place.scale_entry, place, layer);
    return rows;
}

KVJIT_INLINE char* row_at(const RunPlane& plane, i64 token, i64 head) {
    return plane.first + token * plane.token_stride + head * plane.head_stride;
}

}  // namespace kvjit
