// Rows of a relayout: where they lie in the two caches, and their formats (docs/semantics.md, section 2).
#pragma once

#include "common/abi.h"
#include "common/quant.h"
#include "common/spec_block.h"
#include "common/types.h"

namespace kvjit {

/// Between equal formats rows are copied as they are; else a row is what store makes of what load makes of it.
using FromRow = CacheRow;
using ToRow = RowFormat<ToT2, ToT3, kToQuantBit, kToQuantGroup>;

/// A run's rows of one layer's keys or values: row (token i, head h) is at first + i * token_stride + h * head_stride.
struct RunPlane {
    char* first;
    i64 token_stride, head_stride;
};

/// A run's tokens in one of the caches.
struct RunPlace {
    i64 entry, scale_entry;
    i64 token;       // number of the first one in its page
    i64 token_step;  // from one token of the run to the next
};

/// Run `run` in layer `layer`, counted from the first one to copy; `token`: number of the run's first token in its
/// page.
KVJIT_INLINE RunPlace place_of(const abi::RelayoutSide& side, i64 run, i64 layer, i64 token) {
    const i64 at = layer * side.layer_entries + run;
    return {side.entries[at], side.scales[at], token, side.token_step};
}

/// Computed with integers: an entry may be an address, and the base an offset from it.
KVJIT_INLINE RunPlane run_plane(const abi::LayerPlane& at, i64 entry, const RunPlace& place, i64 layer) {
    const abi::Plane& plane = at.plane;
    const i64 first = reinterpret_cast<i64>(plane.base) + entry * plane.page_stride + layer * at.layer_stride +
                      place.token * plane.token_stride;
    return {reinterpret_cast<char*>(first), place.token_step * plane.token_stride, plane.head_stride};
}

/// Codes and scales of a run's keys or values.
struct RunRows {
    RunPlane codes, scales;  // scales: unused unless the cache is quantised
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
