// No two new tokens share a slot: new tokens become runs of neighbouring slots, and sorted runs overlap only with their
// neighbours.
#include <algorithm>
#include <utility>
#include <vector>

#include "check/batch_parts.h"

namespace kvjit::rt {
namespace {

using gen::Result;

void append(std::vector<NewSlots>& runs, const NewSlots& run) {
    const bool continues = !runs.empty() && runs.back().sequence == run.sequence && runs.back().entry == run.entry &&
                           runs.back().end == run.begin;
    if (continues) {
        runs.back().end = run.end;
    } else {
        runs.push_back(run);
    }
}

template <class Index>
std::vector<NewSlots> new_runs(const BatchArrays& arrays, const EntryTable& table) {
    std::vector<NewSlots> runs;
    runs.reserve(static_cast<std::size_t>(arrays.batch.batch_size));
    for (std::int64_t b = 0; b < arrays.batch.batch_size; ++b) {
        const CheckedSequence of = checked_sequence(arrays.batch, b);
        const EntryRange entries = new_entries(arrays.paging, of);
        const Index* row = row_of<Index>(table, arrays.batch, b);
        for (std::int64_t p = entries.first; p < entries.last; ++p) {
            append(runs, new_slots(arrays.paging, of, p, row[p]));
        }
    }
    return runs;
}

Result<void> check_apart(const BatchArrays& arrays, const EntryTable& table, std::int64_t layer) {
    std::vector<NewSlots> runs = arrays.spec.index_type == KVJIT_I32 ? new_runs<std::int32_t>(arrays, table)
                                                                     : new_runs<std::int64_t>(arrays, table);
    std::ranges::sort(runs, {}, [](const NewSlots& run) { return std::pair(run.entry, run.begin); });
    Finding found;
    for (std::size_t i = 1; i < runs.size(); ++i) {
        if (slots_hold(found, table, arrays.paging, runs[i - 1], runs[i])) continue;
        return std::unexpected(rule_error(found, arrays.words.of(layer)));
    }
    return {};
}

/// Appends the slots that the caller chose for sequence b in one layer, if they are in the cache.
bool append_chosen(std::vector<NewSlots>& slots, Finding& found, const BatchArrays& arrays, std::int64_t layer,
                   std::int64_t b) {
    const abi::Indices& starts = arrays.batch.seqstarts;
    for (std::int64_t row = index_at(starts, b); row < index_at(starts, b + 1); ++row) {
        const std::int64_t slot = chosen_slot(arrays.batch, layer, row);
        if (!chosen_slot_holds(found, arrays.batch, arrays.paging, b, row, slot)) return false;
        if (slot >= 0) slots.push_back({0, slot, slot + 1, b});
    }
    return true;
}

/// Checks that no two tokens share a chosen slot. `named`: check_each_layer's.
Result<void> check_chosen(const BatchArrays& arrays, std::int64_t layer, std::int64_t named) {
    std::vector<NewSlots> slots;
    const auto append = [&](Finding& found, std::int64_t b) { return append_chosen(slots, found, arrays, layer, b); };
    if (Result<void> inside = check_sequences(arrays, append, named); !inside) return inside;
    std::ranges::sort(slots, {}, &NewSlots::begin);
    Finding found;
    for (std::size_t i = 1; i < slots.size(); ++i) {
        if (chosen_slots_hold(found, slots[i - 1], slots[i])) continue;
        return std::unexpected(rule_error(found, arrays.words.of(named)));
    }
    return {};
}

}  // namespace

Result<void> check_new_slots(const BatchArrays& arrays) {
    if (!arrays.batch.stores) return {};
    if (!is_given(arrays.batch.slots)) return for_each_table(arrays, check_apart);
    return check_each_layer(arrays.batch.layer_slots, arrays.batch.layers,
                            [&](std::int64_t layer, std::int64_t named) { return check_chosen(arrays, layer, named); });
}

}  // namespace kvjit::rt
