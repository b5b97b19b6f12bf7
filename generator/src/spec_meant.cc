// What the misspelt words of a spec's text were meant to be.
#include <algorithm>
#include <cctype>
#include <vector>

#include "generator/layouts.h"
#include "generator/nearest.h"
#include "spec_parts.h"

namespace kvjit::gen {
namespace {

/// Other libraries' and languages' names, and kvjit's.
struct OtherName {
    std::string_view other, name;
};

constexpr OtherName kOtherFields[] = {
    {"dim", "head_dim"},
    {"head_size", "head_dim"},
    {"block_size", "page_size"},
    {"page_len", "page_size"},
    {"gqa", "group"},
    {"dtype", "t1"},
    {"kv_dtype", "t2"},
    {"kv_cache_dtype", "t2"},
    {"cache_dtype", "t2"},
    {"scale_dtype", "t3"},
    {"bits", "quant_bit"},
    {"window", "has_window"},
    {"sliding_window", "has_window"},
    {"logits_soft_cap", "has_soft_cap"},
    {"softcap", "has_soft_cap"},
    {"mask", "attn_mask"},
    {"kv_layout", "layout"},
    {"operator", "op"},
};

constexpr OtherName kOtherValues[] = {
    {"true", "1"},
    {"yes", "1"},
    {"on", "1"},
    {"false", "0"},
    {"no", "0"},
    {"off", "0"},
    {"float", "f32"},
    {"float32", "f32"},
    {"fp32", "f32"},
    {"float16", "f16"},
    {"fp16", "f16"},
    {"half", "f16"},
    {"bfloat16", "bf16"},
    {"int8", "i8"},
    {"int32", "i32"},
    {"int", "i32"},
    {"int64", "i64"},
    {"long", "i64"},
    {"paged", "page_table"},
    {"pages", "page_table"},
    {"blocks", "block_table"},
    {"contiguous", "offset"},
    {"pointers", "block_pointers"},
    {"none", "0"},
};

std::string lower(std::string_view text) {
    std::string small(text);
    std::ranges::transform(small, small.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return small;
}

/// "": no such other name, or none of `names`.
std::string_view by_other_name(std::span<const OtherName> others, std::string_view given,
                               std::span<const std::string_view> names) {
    for (const OtherName& other : others) {
        if (other.other == lower(given) && std::ranges::find(names, other.name) != names.end()) return other.name;
    }
    return "";
}

std::string_view meant(std::string_view given, std::span<const OtherName> others,
                       std::span<const std::string_view> names) {
    const std::string_view other = by_other_name(others, given, names);
    return other.empty() ? meant_word(given, names) : other;
}

/// A layout's name of which `given` is the part after a colon: the first one, since engines copy each other's.
std::string_view by_last_part(std::string_view given, std::span<const std::string_view> names) {
    for (const std::string_view name : names) {
        const std::size_t colon = name.find(':');
        if (colon != name.npos && lower(name.substr(colon + 1)) == lower(given)) return name;
    }
    return "";
}

std::vector<std::string_view> field_names() {
    std::vector<std::string_view> names;
    for (const Field& row : spec_fields()) names.push_back(row.name);
    return names;
}

}  // namespace

std::string meant_field(std::string_view given) {
    return std::string(meant(given, kOtherFields, field_names()));
}

std::string meant_value(const Field& row, std::string_view given) {
    const std::vector<std::string_view> names = row.values();
    const std::string_view part = by_last_part(given, names);
    return std::string(part.empty() ? meant(given, kOtherValues, names) : part);
}

std::string meant_pair(std::string_view given) {
    if (const std::size_t colon = given.find(':'); colon != given.npos) {
        const Field* row = find_field(given.substr(0, colon));  // field:value
        if (row != nullptr) return std::string(row->name) + "=" + std::string(given.substr(colon + 1));
    }
    for (const Field& row : spec_fields()) {  // a value alone
        const std::vector<std::string_view> values = row.values();
        if (given.size() > 1 && std::ranges::find(values, given) != values.end())
            return std::string(row.name) + "=" + std::string(given);
    }
    const std::string field = meant_field(given);
    return field.empty() ? "" : field + "=...";
}

}  // namespace kvjit::gen
