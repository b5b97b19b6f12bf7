#include <algorithm>
#include <limits>
#include <span>
#include <type_traits>

#include "check/batch_parts.h"
#include "check/fault.h"
#include "check/view.h"

namespace kvjit::rt {
namespace {

using gen::KernelSpec;
using gen::Result;

// ---- Shape ----------------------------------------------------------------------------------------------

/// The same rule with an axis for each layer.
ViewRule for_each_layer(ViewRule rule, const kvjit_batch& batch) {
    std::copy_backward(rule.axes.begin(), rule.axes.begin() + rule.rank, rule.axes.begin() + rule.rank + 1);
    rule.axes[0] = {"L", batch.num_layers, false};
    ++rule.rank;
    return rule;
}

ViewRule table_rule(const KernelSpec& spec, const kvjit_batch& batch, std::string_view name) {
    ViewRule rule{name, static_cast<kvjit_dtype>(spec.index_type), table_rank(spec, batch), {}, true, false};
    if (spec.cache_mode == KVJIT_OFFSET || spec.cache_mode == KVJIT_SEQUENCE_TABLE) {
        rule.axes[0] = {"B", batch.batch_size, true};
    } else if (spec.cache_mode == KVJIT_TOKEN_TABLE) {
        rule.axes[0] = {"K", 0, true};  // its length is kvstarts[B]
    } else if (batch.rowstarts != nullptr) {
        rule.axes[0] = {"entries", 0, true};
    } else {
        rule.axes[0] = {"rows", batch.row_index != nullptr ? 0 : batch.batch_size, true};
        rule.axes[1] = {"MaxP", 0, true};
    }
    return has_layer_tables(spec, batch) ? for_each_layer(rule, batch) : rule;
}

/// Scale blocks have addresses of their own, in a table of the same shape.
Result<void> check_scale_table(const KernelSpec& spec, const kvjit_batch& batch) {
    if (!gen::has_scale_table(spec)) {
        if (!is_present(batch.scalestarts)) return {};
        return gen::fail(KVJIT_BAD_ARGUMENT, "scalestarts",
                         "scalestarts is given; only a quantised cache of block_pointers takes it");
    }
    if (!is_present(batch.scalestarts)) {
        if (batch.batch_size == 0) return {};
        return gen::fail(KVJIT_BAD_ARGUMENT, "scalestarts",
                         "scalestarts is missing; a quantised cache of block_pointers needs it");
    }
    const ViewRule rule = table_rule(spec, batch, "scalestarts");
    if (Result<void> view = check_view(batch.scalestarts, rule); !view) return view;
    if (batch.scalestarts.data != nullptr && batch.scalestarts.data == batch.cachestarts.data)
        return gen::fail(KVJIT_BAD_ARGUMENT, "scalestarts.data",
                         "scalestarts.data is that of cachestarts; blocks of scales have addresses of their own");
    for (int axis = 0; is_present(batch.cachestarts) && axis < rule.rank; ++axis) {
        const std::int64_t extent = batch.cachestarts.shape[axis], stride = batch.cachestarts.strides[axis];
        if (batch.scalestarts.shape[axis] != extent)
            return refuse(KVJIT_BAD_SHAPE, text("scalestarts.shape[", axis, "]"), batch.scalestarts.shape[axis], extent,
                          text("it has the shape of cachestarts, so it takes ", extent));
        if (batch.scalestarts.strides[axis] != stride)
            return refuse(KVJIT_BAD_SHAPE, text("scalestarts.strides[", axis, "]"), batch.scalestarts.strides[axis],
                          stride, text("it has the strides of cachestarts, so it takes ", stride));
    }
    return {};
}

/// Slots that the caller chose for new tokens: for all layers, or for each.
Result<void> check_store_slots(const KernelSpec& spec, const kvjit_batch& batch) {
    const kvjit_tensor& slots = batch.store_slots;
    if (!is_present(slots)) return {};
    if (gen::table_entries(spec) == abi::Entries::kAddresses)
        return gen::fail(KVJIT_BAD_ARGUMENT, "store_slots",
                         "store_slots is given; the blocks of block_pointers have no numbers for it to name");
    const kvjit_dtype type = slots.dtype == KVJIT_I32 ? KVJIT_I32 : KVJIT_I64;
    const ViewRule rule{"store_slots", type, 1, {Axis{"S", 0, true}}, true, false};
    return check_view(slots, slots.rank == 2 ? for_each_layer(rule, batch) : rule);
}

/// CSR tables have no numbered rows, and only paged tables have rows of more than one entry to choose from.
Result<void> check_row_arrays(const KernelSpec& spec, const kvjit_batch& batch) {
    const char* extra = batch.row_index != nullptr ? "row_index" : "rowstarts";
    if (!gen::is_paged(spec) && (batch.rowstarts != nullptr || batch.row_index != nullptr)) {
        return gen::fail(KVJIT_BAD_ARGUMENT, extra,
                         text(extra, " is given; only page_table, block_table and block_pointers take it"));
    }
    if (batch.rowstarts == nullptr || batch.row_index == nullptr) return {};
    return gen::fail(KVJIT_BAD_ARGUMENT, "row_index",
                     "row_index is given with rowstarts; a table takes one of the two");
}

// ---- Entries --------------------------------------------------------------------------------------------

/// Whether outside(entry), whose sign says that is_inside doesn't hold, is never negative. Entries are many: the loop
/// has no branch, so that compilers make it one of vectors.
template <class Index, class Outside>
bool none_outside(std::span<const Index> entries, const Outside& outside) {
    std::make_unsigned_t<Index> all = 0;
    for (const Index entry : entries) all |= outside(static_cast<std::make_unsigned_t<Index>>(entry));
    return static_cast<Index>(all) >= 0;
}

/// Whether is_inside holds for all entries. Differences wrap, so that the sign of one of their two terms shows it.
template <class Index>
bool all_inside(std::span<const Index> entries, const EntryTable& table, const Paging& paging, std::int64_t last) {
    using Bits = std::make_unsigned_t<Index>;
    if (paging.entries == Entries::kAddresses) {
        const auto unaligned = static_cast<Bits>(table.memory.alignment - 1);
        return none_outside(entries, [=](Bits entry) { return entry | (entry - 1) | (Bits{0} - (entry & unaligned)); });
    }
    if (last < 0) return false;
    const auto most = static_cast<Bits>(std::min<std::int64_t>(last, std::numeric_limits<Index>::max()));
    return none_outside(entries, [=](Bits entry) { return entry | (most - entry); });
}

/// Where some entry may be wrong, the rule describes the first that is.
template <class Index>
bool entries_hold(Finding& found, const BatchArrays& arrays, const EntryTable& table, std::int64_t b) {
    const CheckedSequence of = checked_sequence(arrays.batch, b);
    const std::int64_t whole = arrays.paging.page == 0 ? of.keys : arrays.paging.page;
    const std::int64_t last = last_entry(arrays.batch, arrays.paging, whole);
    const EntryRange seen = seen_entries(arrays.batch, arrays.paging, of);
    const Index* row = row_of<Index>(table, arrays.batch, b);
    if (seen.first >= seen.last || all_inside(std::span(row + seen.first, row + seen.last), table, arrays.paging, last))
        return true;
    for (std::int64_t p = seen.first; p < seen.last; ++p) {
        const std::int64_t tokens = std::min(whole, of.keys - p * whole);
        if (!entry_holds(found, arrays.batch, table, arrays.paging, b, p, row[p], tokens)) return false;
    }
    return true;
}

Result<void> check_entries(const BatchArrays& arrays, const EntryTable& table, std::int64_t layer) {
    const auto holds = arrays.spec.index_type == KVJIT_I32 ? entries_hold<std::int32_t> : entries_hold<std::int64_t>;
    return check_sequences(
        arrays, [&](Finding& found, std::int64_t b) { return holds(found, arrays, table, b); }, layer);
}

Result<void> check_reserved_words(const kvjit_batch& batch) {
    if (Result<void> codes = check_reserved("cachestarts", batch.cachestarts); !codes) return codes;
    if (Result<void> scales = check_reserved("scalestarts", batch.scalestarts); !scales) return scales;
    return check_reserved("store_slots", batch.store_slots);
}

Result<void> check_code_table(const KernelSpec& spec, const kvjit_batch& batch) {
    if (is_present(batch.cachestarts)) {
        Result<void> view = check_view(batch.cachestarts, table_rule(spec, batch, "cachestarts"));
        const bool is_csr = batch.rowstarts != nullptr && batch.cachestarts.rank != 1;
        if (!view && is_csr && view.error().status == KVJIT_BAD_SHAPE)
            view.error().message += "; with rowstarts a table is (entries), or (L, entries)";
        return view;
    }
    if (batch.batch_size == 0) return {};
    return gen::fail(KVJIT_BAD_ARGUMENT, "cachestarts", text("cachestarts is missing; ", op_name(spec), " needs it"));
}

}  // namespace

Result<void> check_table_shape(const KernelSpec& spec, const kvjit_batch& batch) {
    if (!gen::has_cache(spec)) return {};
    if (Result<void> words = check_reserved_words(batch); !words) return words;
    if (Result<void> arrays = check_row_arrays(spec, batch); !arrays) return arrays;
    if (Result<void> codes = check_code_table(spec, batch); !codes) return codes;
    if (Result<void> scales = check_scale_table(spec, batch); !scales) return scales;
    return check_store_slots(spec, batch);
}

Result<void> check_table_rows(const BatchArrays& arrays) {
    if (!gen::has_cache(arrays.spec)) return {};
    return check_sequences(arrays, [&](Finding& found, std::int64_t b) {
        return row_holds(found, arrays.batch, arrays.paging, checked_sequence(arrays.batch, b));
    });
}

Result<void> check_table_entries(const BatchArrays& arrays) {
    if (!gen::has_cache(arrays.spec)) return {};
    return for_each_table(arrays, check_entries);
}

}  // namespace kvjit::rt
