#include "check/batch_parts.h"
#include "check/fault.h"
#include "check/view.h"

namespace kvjit::rt {
namespace {

using gen::KernelSpec;
using gen::Result;

// ---- Shape ----------------------------------------------------------------------------------------------

ViewRule table_rule(const KernelSpec& spec, const kvjit_batch& batch) {
    ViewRule rule{"cachestarts", static_cast<kvjit_dtype>(spec.index_type), 1, {}, true, false};
    if (spec.cache_mode == KVJIT_OFFSET) {
        rule.axes[0] = {"B", batch.batch_size, true};
    } else if (spec.cache_mode == KVJIT_TOKEN_TABLE) {
        rule.axes[0] = {"K", 0, true};  // how many, kvstarts say
    } else if (batch.rowstarts != nullptr) {
        rule.axes[0] = {"entries", 0, true};
    } else {
        rule.rank = 2;
        rule.axes[0] = {"rows", batch.row_index != nullptr ? 0 : batch.batch_size, true};
        rule.axes[1] = {"MaxP", 0, true};
    }
    return rule;
}

/// CSR tables have no numbered rows, and only paged tables have rows of more than one entry to choose from.
Result<void> check_row_arrays(const KernelSpec& spec, const kvjit_batch& batch) {
    const char* extra = batch.row_index != nullptr ? "row_index" : "rowstarts";
    if (!gen::is_paged(spec) && (batch.rowstarts != nullptr || batch.row_index != nullptr)) {
        return gen::fail(KVJIT_BAD_ARGUMENT, extra, text(extra, " is given; only page_table and block_table take it"));
    }
    if (batch.rowstarts == nullptr || batch.row_index == nullptr) return {};
    return gen::fail(KVJIT_BAD_ARGUMENT, "row_index",
                     "row_index is given with rowstarts; a table takes one of the two");
}

// ---- Entries --------------------------------------------------------------------------------------------

/// Entries are many: the loop asks no more than whether one is inside, and the rule tells of one that isn't.
template <class Index>
bool entries_hold(Finding& found, const BatchArrays& arrays, std::int64_t b) {
    const std::int64_t keys = key_count(arrays.batch.keys, b);
    const std::int64_t whole = arrays.paging.page == 0 ? keys : arrays.paging.page;
    const std::int64_t last = last_entry(arrays.batch, arrays.paging, whole);
    const EntryRange seen = seen_entries(arrays.batch, arrays.paging, b);
    const Index* row = table_row<Index>(arrays, b);
    for (std::int64_t p = seen.first; p < seen.last; ++p) {
        if (row[p] >= 0 && row[p] <= last) continue;
        const std::int64_t tokens = std::min(whole, keys - p * whole);
        if (!entry_holds(found, arrays.batch, arrays.paging, b, p, row[p], tokens)) return false;
    }
    return true;
}

template <class Index>
Result<void> check_all_entries(const BatchArrays& arrays) {
    return check_sequences(arrays,
                           [&](Finding& found, std::int64_t b) { return entries_hold<Index>(found, arrays, b); });
}

}  // namespace

Result<void> check_table_shape(const KernelSpec& spec, const kvjit_batch& batch) {
    if (!gen::has_cache(spec)) return {};
    if (Result<void> arrays = check_row_arrays(spec, batch); !arrays) return arrays;
    if (!is_present(batch.cachestarts) && batch.batch_size == 0) return {};
    if (!is_present(batch.cachestarts)) {
        return gen::fail(KVJIT_BAD_ARGUMENT, "cachestarts",
                         text("cachestarts is missing; ", op_name(spec), " needs it"));
    }
    return check_view(batch.cachestarts, table_rule(spec, batch));
}

Result<void> check_table_rows(const BatchArrays& arrays) {
    if (!gen::has_cache(arrays.spec)) return {};
    return check_sequences(
        arrays, [&](Finding& found, std::int64_t b) { return row_holds(found, arrays.batch, arrays.paging, b); });
}

Result<void> check_table_entries(const BatchArrays& arrays) {
    if (!gen::has_cache(arrays.spec)) return {};
    return arrays.spec.index_type == KVJIT_I32 ? check_all_entries<std::int32_t>(arrays)
                                               : check_all_entries<std::int64_t>(arrays);
}

}  // namespace kvjit::rt
