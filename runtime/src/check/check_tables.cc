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
        rule.axes[0] = {"K", key_rows(batch), true};
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

// ---- Rows -----------------------------------------------------------------------------------------------

Result<void> check_rowstarts(const kvjit_batch& batch) {
    const std::int64_t count = batch.batch_size;
    Result<void> result = check_monotonic("rowstarts", batch.rowstarts, count);
    const std::int64_t entries = batch.cachestarts.shape[0];
    if (!result || batch.rowstarts[count] <= entries) return result;
    return refuse_entry("rowstarts", text(count), batch.rowstarts[count], entries,
                        text("cachestarts has ", entries, " entries"), count - 1);
}

Result<void> check_row_index(const kvjit_batch& batch) {
    const std::int64_t rows = batch.cachestarts.shape[0];
    for (std::int64_t b = 0; b < batch.batch_size; ++b) {
        const std::int64_t row = batch.row_index[b];
        if (row >= 0 && row < rows) continue;
        return refuse_entry("row_index", text(b), row, rows, text("cachestarts has ", rows, " rows"), b);
    }
    return {};
}

std::int64_t row_entries(const kvjit_batch& batch, std::int64_t b) {
    if (batch.rowstarts != nullptr) return batch.rowstarts[b + 1] - batch.rowstarts[b];
    return batch.cachestarts.shape[1];
}

Result<void> check_row_lengths(const KernelSpec& spec, const kvjit_batch& batch) {
    for (std::int64_t b = 0; b < batch.batch_size; ++b) {
        const std::int64_t m = batch.kvstarts[b + 1] - batch.kvstarts[b];
        const std::int64_t entries = row_entries(batch, b);
        if (used_entries(spec, m) <= entries) continue;
        const std::int64_t most = saturating_product(entries, std::int64_t{spec.page_size});
        return gen::fail(KVJIT_BAD_INDEX, "kvstarts",
                         text("kvstarts gives sequence ", b, " ", m, " keys; its row of cachestarts has ", entries,
                              " pages of ", spec.page_size, " tokens, room for ", most),
                         m, most, b);
    }
    return {};
}

// ---- Entries --------------------------------------------------------------------------------------------

/// The largest entry whose first `tokens` tokens lie in the cache; negative if there is none.
std::int64_t last_entry(const KernelSpec& spec, const kvjit_batch& batch, std::int64_t tokens) {
    return spec.cache_mode == KVJIT_BLOCK_TABLE ? batch.num_blocks - 1 : batch.max_tokens - tokens;
}

/// Index of the first entry outside 0..last, or count.
template <class Index>
std::int64_t first_outside(const Index* entries, std::int64_t count, std::int64_t last) {
    for (std::int64_t p = 0; p < count; ++p) {
        if (entries[p] < 0 || entries[p] > last) return p;
    }
    return count;
}

std::string entry_rule(const KernelSpec& spec, const kvjit_batch& batch, std::int64_t entry, std::int64_t tokens) {
    if (spec.cache_mode == KVJIT_BLOCK_TABLE) return text("num_blocks is ", batch.num_blocks);
    if (entry < 0) return text("slots count from 0, max_tokens is ", batch.max_tokens);
    return text("its ", tokens, " tokens reach slot ", saturating_sum(entry, tokens - 1), ", max_tokens is ",
                batch.max_tokens);
}

std::string entry_index(const KernelSpec& spec, const kvjit_batch& batch, std::int64_t b, std::int64_t p) {
    const bool two_axes = batch.cachestarts.rank == 2;
    if (!two_axes) return text(row_begin(spec, batch, b) + p);
    return text(batch.row_index != nullptr ? batch.row_index[b] : b, ", ", p);
}

std::unexpected<gen::Error> refuse_slot(const KernelSpec& spec, const kvjit_batch& batch, std::int64_t b,
                                        std::int64_t p, std::int64_t entry, std::int64_t tokens) {
    const std::int64_t limit = spec.cache_mode == KVJIT_BLOCK_TABLE ? batch.num_blocks : batch.max_tokens;
    return refuse_entry("cachestarts", entry_index(spec, batch, b, p), entry, limit,
                        entry_rule(spec, batch, entry, tokens), b);
}

template <class Index>
Result<void> check_row_entries(const KernelSpec& spec, const kvjit_batch& batch, std::int64_t b) {
    const std::int64_t m = batch.kvstarts[b + 1] - batch.kvstarts[b];
    const std::int64_t full = used_entries(spec, m) - 1;  // all but the last are used whole
    if (full < 0) return {};
    const std::int64_t whole = tokens_per_entry(spec);
    const Index* row = table_row<Index>(spec, batch, b);
    const std::int64_t bad = first_outside(row, full, last_entry(spec, batch, whole));
    if (bad < full) return refuse_slot(spec, batch, b, bad, row[bad], whole);
    const std::int64_t rest = m - full * whole;
    if (first_outside(row + full, 1, last_entry(spec, batch, rest)) == 1) return {};
    return refuse_slot(spec, batch, b, full, row[full], rest);
}

template <class Index>
Result<void> check_all_entries(const KernelSpec& spec, const kvjit_batch& batch) {
    for (std::int64_t b = 0; b < batch.batch_size; ++b) {
        if (Result<void> result = check_row_entries<Index>(spec, batch, b); !result) return result;
    }
    return {};
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

Result<void> check_table_rows(const KernelSpec& spec, const kvjit_batch& batch) {
    if (!gen::has_cache(spec) || !gen::is_paged(spec) || batch.batch_size == 0) return {};
    if (batch.rowstarts != nullptr) {
        if (Result<void> starts = check_rowstarts(batch); !starts) return starts;
    }
    if (batch.row_index != nullptr) {
        if (Result<void> rows = check_row_index(batch); !rows) return rows;
    }
    return check_row_lengths(spec, batch);
}

Result<void> check_table_entries(const KernelSpec& spec, const kvjit_batch& batch) {
    if (!gen::has_cache(spec)) return {};
    return spec.index_type == KVJIT_I32 ? check_all_entries<std::int32_t>(spec, batch)
                                        : check_all_entries<std::int64_t>(spec, batch);
}

}  // namespace kvjit::rt
