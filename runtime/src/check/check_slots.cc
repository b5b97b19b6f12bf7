// No slot for two new tokens: new tokens become runs of neighbouring slots, sorted runs overlap only with their
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
        const EntryRange entries = new_entries(arrays.batch, arrays.paging, b);
        const Index* row = row_of<Index>(table, arrays.batch, b);
        for (std::int64_t p = entries.first; p < entries.last; ++p) {
            append(runs, new_slots(arrays.batch, arrays.paging, b, p, row[p]));
        }
    }
    return runs;
}

Result<void> check_apart(const BatchArrays& arrays, const EntryTable& table) {
    std::vector<NewSlots> runs = arrays.spec.index_type == KVJIT_I32 ? new_runs<std::int32_t>(arrays, table)
                                                                     : new_runs<std::int64_t>(arrays, table);
    std::ranges::sort(runs, {}, [](const NewSlots& run) { return std::pair(run.entry, run.begin); });
    Finding found;
    for (std::size_t i = 1; i < runs.size(); ++i) {
        if (slots_hold(found, table, arrays.paging, runs[i - 1], runs[i])) continue;
        return std::unexpected(rule_error(found, arrays.words()));
    }
    return {};
}

/// Where the caller chose slots: a layer's, in the cache.
Result<void> append_chosen(std::vector<NewSlots>& slots, const BatchArrays& arrays, std::int64_t layer,
                           std::int64_t b) {
    Finding found;
    const abi::Indices& starts = arrays.batch.seqstarts;
    for (std::int64_t row = index_at(starts, b); row < index_at(starts, b + 1); ++row) {
        const std::int64_t slot = chosen_slot(arrays.batch, layer, row);
        if (!chosen_slot_holds(found, arrays.batch, arrays.paging, b, row, slot))
            return std::unexpected(rule_error(found, arrays.words()));
        if (slot >= 0) slots.push_back({0, slot, slot + 1, b});
    }
    return {};
}

/// And none for two tokens.
Result<void> check_chosen(const BatchArrays& arrays, std::int64_t layer) {
    std::vector<NewSlots> slots;
    for (std::int64_t b = 0; b < arrays.batch.batch_size; ++b) {
        if (Result<void> appended = append_chosen(slots, arrays, layer, b); !appended) return appended;
    }
    std::ranges::sort(slots, {}, &NewSlots::begin);
    Finding found;
    for (std::size_t i = 1; i < slots.size(); ++i) {
        if (chosen_slots_hold(found, slots[i - 1], slots[i])) continue;
        return std::unexpected(rule_error(found, arrays.words()));
    }
    return {};
}

}  // namespace

Result<void> check_new_slots(const BatchArrays& arrays) {
    if (!arrays.batch.stores) return {};
    if (!is_given(arrays.batch.slots)) return for_each_table(arrays, check_apart);
    const std::int64_t layers = arrays.batch.layer_slots == 0 ? 1 : arrays.batch.layers;
    for (std::int64_t layer = 0; layer < layers; ++layer) {
        if (Result<void> checked = check_chosen(arrays, layer); !checked) return checked;
    }
    return {};
}

}  // namespace kvjit::rt
