// What the files about specs share: fields (spec_fields.cc), rules (spec_rules.cc), text (spec_text.cc) and derived
// specs (spec.cc, spec_cache.cc).
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "generator/field.h"
#include "generator/operator.h"
#include "generator/spec.h"

namespace kvjit::gen {

/// The prefix of the fields of a Relayout's destination.
inline constexpr std::string_view kTo = "to_";
inline constexpr std::string_view kLayout = "layout";
inline constexpr std::string_view kToLayout = "to_layout";

/// A field of the source, and its counterpart of the destination.
struct Mirrored {
    SpecMember member, to;
};
inline constexpr Mirrored kMirrored[] = {
    {&KernelSpec::t2, &KernelSpec::to_t2},
    {&KernelSpec::t3, &KernelSpec::to_t3},
    {&KernelSpec::quant_bit, &KernelSpec::to_quant_bit},
    {&KernelSpec::quant_group, &KernelSpec::to_quant_group},
    {&KernelSpec::cache_mode, &KernelSpec::to_cache_mode},
    {&KernelSpec::page_size, &KernelSpec::to_page_size},
    {&KernelSpec::index_type, &KernelSpec::to_index_type},
};

using SpecText = char (KernelSpec::*)[16];

template <std::size_t N>
void set_text(char (&to)[N], std::string_view text) {
    std::ranges::fill(to, '\0');
    std::ranges::copy(text, to);
}

inline std::string_view text_of(const KernelSpec& spec, SpecText member) {
    return {spec.*member, strnlen(spec.*member, sizeof(spec.*member))};
}

/// An order of values' axes, as a spec has it. Empty: as the layout of keys has it, which may have been said by its
/// letters.
std::string_view own_value_axes(const KernelSpec& spec, SpecText values, SpecText keys);

bool is_quantised(const KernelSpec& spec);
/// Whether entries are indices, not addresses.
bool has_indices(const KernelSpec& spec);

/// Null: no such field.
const Field* find_field(std::string_view name);
/// Whether the operator uses the field. "op" counts always.
bool counts_for_op(const Field& row, const Operator& op);

std::optional<std::int64_t> number_of(std::string_view text);

/// `shown`: the value as the message prints it.
std::unexpected<Error> refuse(const Field& row, std::string_view shown, std::string_view says,
                              std::optional<std::int64_t> value, std::int64_t limit);
/// For a value that the field never allows, whatever the others are.
std::unexpected<Error> refuse_value(const Field& row, std::string_view shown, std::optional<std::int64_t> value);

/// What a misspelt field, value, or word without `=` was probably meant to be, also by another library's name for it;
/// "": nothing is likely. meant_pair: a whole pair.
std::string meant_field(std::string_view given);
std::string meant_value(const Field& row, std::string_view given);
std::string meant_pair(std::string_view given);

Result<void> check_legal(const KernelSpec& spec);
/// validate_spec; `advice` ends the message about a field that doesn't count.
Result<void> validate(const KernelSpec& spec, std::string_view advice);

}  // namespace kvjit::gen
