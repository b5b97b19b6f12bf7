// KernelSpec: the kernel that a user requests. One table of fields parses, prints, checks and explains it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/abi.h"
#include "generator/axes.h"
#include "generator/element_type.h"
#include "generator/error.h"
#include "kvjit/kvjit.h"

namespace kvjit::gen {

using KernelSpec = kvjit_spec;

/// One member of kvjit_spec as text. docs/architecture.md explains how to add one.
struct Field {
    std::string_view name;
    std::string_view takes;
    std::string_view help;
    std::string (*print)(const KernelSpec&);
    /// Parses `value` and stores it if the field allows it.
    bool (*parse)(std::string_view value, KernelSpec&);
    /// Whether the field allows the stored value.
    bool (*legal)(const KernelSpec&);
    /// For a number that a field's range refuses: the bound exceeded, or the step that must divide it. Else 0.
    std::int64_t (*limit)(std::int64_t value);
    /// For a field that the operator uses (operator.h): the other field that decides whether this one counts, and the
    /// test: without quant_bit, t3 means nothing. "op" and null: it always counts.
    std::string_view decides;
    bool (*counts)(const KernelSpec&);
    /// The names that the field takes; none for numbers. Of layouts, those that have a name.
    std::vector<std::string_view> (*values)();
};

std::span<const Field> spec_fields();

/// Whether the field counts, given the values of the others.
bool counts(const Field& row, const KernelSpec& spec);

KernelSpec default_spec();

/// Parses like kvjit_spec_parse, but checks each value alone, not their combination.
Result<KernelSpec> parse_fields(std::string_view text);

/// See kvjit_spec_parse. The result is validated.
Result<KernelSpec> parse_spec(std::string_view text);

/// Fields in table order, defaults omitted, comma-separated.
std::string print_spec(const KernelSpec& spec);

/// The spec with the defaults in all fields that don't count. Precondition: its values are legal.
KernelSpec without_useless(const KernelSpec& spec);

/// See kvjit_spec_for_op. The result is validated.
Result<KernelSpec> spec_for_op(const KernelSpec& spec, kvjit_op op);

/// See kvjit_relayout_spec. The result is validated.
Result<KernelSpec> relayout_spec(const KernelSpec& from, const KernelSpec& to);

/// Checks each value, their combination (docs/semantics.md, sections 4 to 7), and that fields that don't count have
/// their defaults.
Result<void> validate_spec(const KernelSpec& spec);

bool has_cache(const KernelSpec& spec);  // the operator's keys lie in a cache

bool is_relayout(const KernelSpec& spec);
/// One side of a Relayout as a Relayout of its own, whose fields without to_ are that cache's. source_of any other spec
/// is the spec itself.
KernelSpec source_of(const KernelSpec& spec);
KernelSpec destination_of(const KernelSpec& spec);

// ---- A cache's mode and layout -------------------------------------------------------------------------------------

bool is_paged(const KernelSpec& spec);  // page_table, block_table, block_pointers: an entry stands for page_size tokens
/// Tokens that an entry of the table stands for; 0: all of a sequence. Packed keys and values: 0.
std::int64_t page_tokens(const KernelSpec& spec);
abi::Entries table_entries(const KernelSpec& spec);
/// Whether the batch gives the numbers of tokens and of blocks, which it doesn't for blocks at addresses.
bool has_max_tokens(const KernelSpec& spec);
bool has_num_blocks(const KernelSpec& spec);
/// Whether the call passes the cache as tensors, which it doesn't for blocks at addresses.
bool has_cache_tensors(const KernelSpec& spec);
/// Whether keys and values are tensors of their own: the layout lacks axis 2.
bool is_apart(const KernelSpec& spec);
/// Whether scale blocks have addresses of their own.
bool has_scale_table(const KernelSpec& spec);
/// Resolved types: AUTO replaced. cache_type is KVJIT_I8 or KVJIT_U8 (two int4 a byte) for a quantised cache.
kvjit_dtype cache_type(const KernelSpec& spec);
kvjit_dtype scale_type(const KernelSpec& spec);
/// Whether the heads of one token are neighbours in memory: H lies right of T. Dense keys and values are (K, Hkv, D).
bool is_head_inner(const KernelSpec& spec);
/// Axes of the cache, outermost first: "L2HTD".
std::string_view layout_axes(const KernelSpec& spec);
/// Axes of the values' tensor where keys and values are tensors of their own; else the cache's.
std::string_view value_axes(const KernelSpec& spec);
/// Elements of a row of codes (for int4, bytes of two codes each), and of a row of scales.
std::int64_t code_elements(const KernelSpec& spec);
std::int64_t scale_elements(const KernelSpec& spec);

/// The pieces into which a layout splits rows and pages.
struct Cut {
    std::int32_t elements;  // contiguous ones of a row: head_dim where rows are whole
    std::int32_t tokens;    // of a page that lie one stride apart; 0: all of the page's

    bool operator==(const Cut&) const = default;
};
/// The pieces of a cache's keys (part 0) or values (part 1).
Cut cut_of(const KernelSpec& spec, int part);
/// The pieces of a layout that splits nothing.
Cut whole(const KernelSpec& spec);

}  // namespace kvjit::gen
