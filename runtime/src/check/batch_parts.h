// The parts of check_batch, in the order in which they run. Each relies on the checks of those above it.
#pragma once

#include "check/check_batch.h"
#include "check/checked_batch.h"
#include "check/rule_text.h"

namespace kvjit::rt {

/// Type, rank, extents, strides and pointer of cachestarts; which of rowstarts and row_index go with it. O(1).
gen::Result<void> check_table_shape(const gen::KernelSpec& spec, const kvjit_batch& batch);

/// A batch of at least one sequence, whose arrays the host can read.
struct BatchArrays {
    const gen::KernelSpec& spec;
    abi::CheckedBatch batch;
    Paging paging;
    RuleWords words;
};

/// S and K, the last of seqstarts and kvstarts. O(1).
gen::Result<void> check_totals(const BatchArrays& arrays);

/// seqstarts, kvstarts, max_seqlen, max_kvlen. O(B).
gen::Result<void> check_starts(const BatchArrays& arrays);

/// New tokens are the last keys of their sequence, and start_pos agrees. O(B).
gen::Result<void> check_new_positions(const BatchArrays& arrays);

/// rowstarts, row_index, and rows long enough for their keys. O(B).
gen::Result<void> check_table_rows(const BatchArrays& arrays);

/// Each entry that a key uses. O(B + pages).
gen::Result<void> check_table_entries(const BatchArrays& arrays);

/// No two new tokens share a slot. O(B + r log r), r runs of neighbouring new slots.
gen::Result<void> check_new_slots(const BatchArrays& arrays);

// ---- What the parts share -------------------------------------------------------------------------------

/// Checks the rule `holds(found, b)` of each sequence b; `layer`: RuleWords'.
template <class Holds>
gen::Result<void> check_sequences(const BatchArrays& arrays, const Holds& holds, std::int64_t layer = -1) {
    Finding found;
    for (std::int64_t b = 0; b < arrays.batch.batch_size; ++b) {
        if (!holds(found, b)) return std::unexpected(rule_error(found, arrays.words.of(layer)));
    }
    return {};
}

/// Calls `check(layer, named)` for each layer of an array whose layers are `stride` elements apart. With stride 0 there
/// is one call for all layers, with named -1.
template <class Check>
gen::Result<void> check_each_layer(std::int64_t stride, std::int64_t layers, const Check& check) {
    if (stride == 0) return check(0, -1);
    for (std::int64_t layer = 0; layer < layers; ++layer) {
        if (auto checked = check(layer, layer); !checked) return checked;
    }
    return {};
}

/// Calls `check(arrays, table, layer)` for each layer's table of codes, and of scales if there is one; with layer -1
/// for a table of all layers.
template <class Index, class Check>
gen::Result<void> for_each_table_of(const BatchArrays& arrays, const Check& check) {
    return check_each_layer(arrays.batch.layer_entries, arrays.batch.layers,
                            [&](std::int64_t layer, std::int64_t named) {
                                auto checked = check(arrays, code_table<Index>(arrays.batch, layer), named);
                                if (!checked || arrays.batch.table.scales == nullptr) return checked;
                                return check(arrays, scale_table<Index>(arrays.batch, layer), named);
                            });
}
template <class Check>
gen::Result<void> for_each_table(const BatchArrays& arrays, const Check& check) {
    return arrays.spec.index_type == KVJIT_I32 ? for_each_table_of<std::int32_t>(arrays, check)
                                               : for_each_table_of<std::int64_t>(arrays, check);
}

}  // namespace kvjit::rt
