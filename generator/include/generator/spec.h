// KernelSpec: what a user asks for. Each field stands once, in the table that parses, prints, checks and explains it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/abi.h"
#include "generator/axes.h"
#include "generator/element_type.h"
#include "generator/error.h"
#include "kvjit/kvjit.h"

namespace kvjit::gen {

using KernelSpec = kvjit_spec;

/// One member of kvjit_spec as text. docs/architecture.md tells how to add one.
struct Field {
    std::string_view name;
    std::string_view takes;
    std::string_view help;
    std::string (*print)(const KernelSpec&);
    /// Stores `value` if it is one that the field takes.
    bool (*parse)(std::string_view value, KernelSpec&);
    /// Whether the stored value is one that the field takes.
    bool (*legal)(const KernelSpec&);
    /// Of a field in a range, the bound that a number past it has passed, or what it takes multiples of. Else 0.
    std::int64_t (*limit)(std::int64_t value);
    /// Where the operator uses the field (operator.h), the field that decides whether it counts, and how: without
    /// quant_bit, t3 means nothing. "op", null: it counts.
    std::string_view decides;
    bool (*counts)(const KernelSpec&);
};

std::span<const Field> spec_fields();

KernelSpec default_spec();

/// Reads what kvjit_spec_parse does: each value is legal, not yet all of them together.
Result<KernelSpec> parse_fields(std::string_view text);

/// See kvjit_spec_parse. The result is validated.
Result<KernelSpec> parse_spec(std::string_view text);

/// Fields in table order, defaults omitted, comma-separated.
std::string print_spec(const KernelSpec& spec);

/// The spec with the defaults in all fields that don't count. Its values are legal.
KernelSpec without_useless(const KernelSpec& spec);

/// See kvjit_spec_for_op. The result is validated.
Result<KernelSpec> spec_for_op(const KernelSpec& spec, kvjit_op op);

/// See kvjit_relayout_spec. The result is validated.
Result<KernelSpec> relayout_spec(const KernelSpec& from, const KernelSpec& to);

/// Every value legal, and legal together (docs/semantics.md, sections 4 to 7); a field that doesn't count has its
/// default.
Result<void> validate_spec(const KernelSpec& spec);

bool has_cache(const KernelSpec& spec);  // the operator's keys lie in one

bool is_relayout(const KernelSpec& spec);
/// The caches of a Relayout, each as a Relayout of itself: the fields without to_ are the cache's. Of another spec,
/// source_of is the spec.
KernelSpec source_of(const KernelSpec& spec);
KernelSpec destination_of(const KernelSpec& spec);

// ---- Of a cache: what its mode and its layout mean ------------------------------------------------------------------

bool is_paged(const KernelSpec& spec);  // page_table, block_table, block_pointers: an entry stands for page_size tokens
/// Tokens that an entry of the table stands for; 0: all of a sequence. Packed keys and values: 0.
std::int64_t page_tokens(const KernelSpec& spec);
abi::Entries table_entries(const KernelSpec& spec);
/// Whether the batch says how many tokens, and how many blocks, there are: blocks at addresses nobody counts.
bool has_max_tokens(const KernelSpec& spec);
bool has_num_blocks(const KernelSpec& spec);
/// Whether the call has tensors of it: not of blocks at addresses.
bool has_cache_tensors(const KernelSpec& spec);
/// Whether they are two, of keys and of values: the layout lacks axis 2.
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
/// Of the values' tensor, where keys and values lie apart; else the cache's.
std::string_view value_axes(const KernelSpec& spec);
/// Elements of a row of codes, bytes of two for int4; and of its scales.
std::int64_t code_elements(const KernelSpec& spec);
std::int64_t scale_elements(const KernelSpec& spec);

/// What a layout cuts rows and pages into.
struct Cut {
    std::int32_t elements;  // of a row that are neighbours: head_dim where rows are whole
    std::int32_t tokens;    // of a page that lie one stride apart; 0: all of them

    bool operator==(const Cut&) const = default;
};
/// Of keys (part 0) or values (part 1) of a cache.
Cut cut_of(const KernelSpec& spec, int part);
/// Of a cache that cuts nothing.
Cut whole(const KernelSpec& spec);

}  // namespace kvjit::gen
