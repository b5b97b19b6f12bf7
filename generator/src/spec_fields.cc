// The table of a spec's fields.
#include <array>
#include <tuple>
#include <vector>

#include "generator/layouts.h"
#include "generator/score_rules.h"
#include "joined.h"
#include "spec_parts.h"

namespace kvjit::gen {
namespace {

constexpr Name named(kvjit_dtype type) {
    return {dtype_name(type), type};
}
constexpr Name kInputTypes[] = {named(KVJIT_F32), named(KVJIT_F16), named(KVJIT_BF16), named(KVJIT_I8)};
constexpr Name kCacheTypes[] = {named(KVJIT_AUTO), named(KVJIT_F32), named(KVJIT_F16), named(KVJIT_BF16),
                                named(KVJIT_I8)};
constexpr Name kScaleTypes[] = {named(KVJIT_AUTO), named(KVJIT_F32), named(KVJIT_F16), named(KVJIT_BF16)};
constexpr Name kIndexTypes[] = {named(KVJIT_I64), named(KVJIT_I32)};
constexpr Name kModes[] = {{"offset", KVJIT_OFFSET},
                           {"token_table", KVJIT_TOKEN_TABLE},
                           {"page_table", KVJIT_PAGE_TABLE},
                           {"block_table", KVJIT_BLOCK_TABLE},
                           {"block_pointers", KVJIT_BLOCK_POINTERS},
                           {"sequence_table", KVJIT_SEQUENCE_TABLE}};
constexpr Name kQuantBits[] = {{"0", 0}, {"8", 8}, {"4", 4}};

/// The value of a to_ field that stands for the field of the same name without to_.
constexpr std::string_view kSameField = "same";

/// An order of axes. `kEmpty`: the text of an empty one; "": it must not be empty. kNames: layouts' names are allowed.
template <SpecText kMember, const std::string_view& kEmpty, bool kNames>
struct AxesField {
    static std::string print(const KernelSpec& spec) {
        const std::string_view axes = text_of(spec, kMember);
        return std::string(axes.empty() ? kEmpty : axes);
    }
    static bool parse(std::string_view text, KernelSpec& spec) {
        const NamedLayout* named = kNames ? find_layout(text) : nullptr;
        const std::string_view axes = named == nullptr ? text : named->order;
        const bool empty = !kEmpty.empty() && text == kEmpty;
        if (axes.size() >= sizeof(spec.*kMember) || (!empty && !is_axis_order(axes))) return false;
        set_text(spec.*kMember, empty ? "" : axes);
        return true;
    }
    static bool legal(const KernelSpec& spec) {
        const std::string_view axes = text_of(spec, kMember);
        return (axes.empty() && !kEmpty.empty()) || is_axis_order(axes);
    }
    static std::int64_t limit(std::int64_t) { return 0; }
    static std::vector<std::string_view> values() {
        std::vector<std::string_view> names;
        if (!kEmpty.empty()) names.push_back(kEmpty);
        for (const NamedLayout& layout : kNamedLayouts) {
            if (kNames) names.push_back(layout.name);
        }
        return names;
    }
};
constexpr std::string_view kNeverEmpty;
using LayoutField = AxesField<&KernelSpec::layout, kNeverEmpty, true>;
/// The values' order of axes, where it differs from the keys'.
template <SpecText kValues, SpecText kKeys>
struct ValuesField : AxesField<kValues, kLayout, false> {
    static std::string print(const KernelSpec& spec) {
        const std::string_view axes = own_value_axes(spec, kValues, kKeys);
        return std::string(axes.empty() ? kLayout : axes);
    }
};
using ValueLayoutField = ValuesField<&KernelSpec::value_layout, &KernelSpec::layout>;
using ToValueLayoutField = ValuesField<&KernelSpec::to_value_layout, &KernelSpec::to_layout>;
using ToLayoutField = AxesField<&KernelSpec::to_layout, kSameField, true>;

/// A field of a Relayout's destination that allows what F allows, or "same".
template <SpecMember kMember, class F>
struct ToField {
    static bool is_same(const KernelSpec& spec) { return spec.*kMember == KVJIT_SAME; }
    static std::string print(const KernelSpec& spec) {
        return is_same(spec) ? std::string(kSameField) : F::print(spec);
    }
    static bool parse(std::string_view text, KernelSpec& spec) {
        if (text != kSameField) return F::parse(text, spec);
        spec.*kMember = KVJIT_SAME;
        return true;
    }
    static bool legal(const KernelSpec& spec) { return is_same(spec) || F::legal(spec); }
    static std::int64_t limit(std::int64_t value) { return F::limit(value); }
    static std::vector<std::string_view> values() {
        std::vector<std::string_view> names = F::values();
        names.insert(names.begin(), kSameField);
        return names;
    }
};
template <SpecMember kMember, auto& kNames>
using ToNamedField = ToField<kMember, NamedField<kMember, kNames>>;
template <SpecMember kMember, std::int32_t kMin, std::int32_t kMax>
using ToNumberField = ToField<kMember, NumberField<kMember, kMin, kMax>>;

/// A predicate on specs, applied to a Relayout's destination.
template <bool (*kAsked)(const KernelSpec&)>
bool of_destination(const KernelSpec& spec) {
    return kAsked(destination_of(spec));
}

/// 0, or a legal head_dim.
struct ValueHeadDimField : NumberField<&KernelSpec::value_head_dim, 0, 512, 8> {};

struct OpField {
    static std::string print(const KernelSpec& spec) {
        return legal(spec) ? std::string(operator_of(spec).name) : std::to_string(spec.op);
    }
    static bool parse(std::string_view text, KernelSpec& spec) {
        const auto it = std::ranges::find(operators(), text, &Operator::name);
        if (it == operators().end()) return false;
        spec.op = it->op;
        return true;
    }
    static bool legal(const KernelSpec& spec) { return spec.op >= 1 && spec.op <= std::ssize(operators()); }
    static std::int64_t limit(std::int64_t) { return 0; }
    static std::vector<std::string_view> values() {
        std::vector<std::string_view> names;
        for (const Operator& op : operators()) names.push_back(op.name);
        return names;
    }
};

/// Whether a Relayout's destination has a layout of its own, with keys and values apart.
bool has_own_pair(const KernelSpec& spec) {
    return !text_of(spec, &KernelSpec::to_layout).empty() && is_apart(destination_of(spec));
}

constexpr std::array kFirstFields = {
    field<OpField>("op", "KeyValueCache | MultiHeadAttention | MultiHeadCacheAttention | Merge | Relayout",
                   "the operator"),
    field<NumberField<&KernelSpec::head_dim, 8, 512, 8>>("head_dim", "a multiple of 8 from 8 to 512",
                                                         "elements of one head, D"),
    field<ValueHeadDimField>("value_head_dim", "0, or a multiple of 8 up to 512",
                             "elements of a value's head; 0: head_dim"),
    field<NumberField<&KernelSpec::group, 1, 256>>("group", "1 to 256",
                                                   "query heads that share a kv head, num_heads / num_kv_heads"),
    field<NamedField<&KernelSpec::t1, kInputTypes>>(
        "t1", "f32 | f16 | bf16 | i8",
        "query, new keys and values, mask, outputs; i8: KeyValueCache and Relayout only"),
    field<NamedField<&KernelSpec::t2, kCacheTypes>>("t2", "auto | f32 | f16 | bf16 | i8",
                                                    "cache elements when quant_bit is 0; auto: t1"),
    field<NamedField<&KernelSpec::t3, kScaleTypes>>("t3", "auto | f32 | f16 | bf16", "quantisation scales; auto: t1",
                                                    "quant_bit", is_quantised),
    field<NamedField<&KernelSpec::quant_bit, kQuantBits>>("quant_bit", "0 | 8 | 4", "bits of a cache code; 0: none"),
    field<NumberField<&KernelSpec::quant_group, 4, 512>>(
        "quant_group", "head_dim (up to 512), or a power of two from 4 that divides it", "elements that share a scale",
        "quant_bit", is_quantised),
    field<NamedField<&KernelSpec::cache_mode, kModes>>(
        "cache_mode", "offset | token_table | page_table | block_table | block_pointers | sequence_table",
        "where position t of a sequence lies in the cache"),
    field<NumberField<&KernelSpec::page_size, 1, 1 << 20>>("page_size", "1 to 1048576; powers of two are fastest",
                                                           "tokens a page or block", "cache_mode", is_paged),
    field<NamedField<&KernelSpec::index_type, kIndexTypes>>("index_type", "i64 | i32", "elements of cachestarts",
                                                            "cache_mode", has_indices),
    field<NamedField<&KernelSpec::starts_type, kIndexTypes>>("starts_type", "i64 | i32",
                                                             "elements of seqstarts, kvstarts and the batch's others"),
    field<NamedField<&KernelSpec::is_causal, kBools>>("is_causal", "0 | 1",
                                                      "mask keys past the query, but in decoding_batches"),
};

/// The fields of score rules stand with the rules.
constexpr std::array kScoreFields =
    std::apply([](const auto&... rules) { return std::array{rules.field...}; }, kScoreRules);

/// No std::string: Clang takes none of GCC 12's library in constants.
constexpr std::vector<char> layout_takes() {
    std::vector<char> text;
    const auto add = [&](std::string_view part) { text.insert(text.end(), part.begin(), part.end()); };
    add("an order of T, L, 2, H, D (block_table: and N); NHDTd8 splits D; or a name of ");
    std::string_view before = "";
    for (const std::string_view family : layout_families()) {
        add(before);
        add(family);
        before = ", ";
    }
    add(", as vllm:LBNHC (kvjit spec list layouts has them), PMX's also as 0..3, r1:0..r1:3");
    return text;
}
constexpr auto kLayoutTakes = [] {
    std::array<char, layout_takes().size()> text{};
    std::ranges::copy(layout_takes(), text.begin());
    return text;
}();

constexpr std::array kLayoutFields = {
    field<LayoutField>("layout", {kLayoutTakes.data(), kLayoutTakes.size()},
                       "axes of the cache, outermost first; L may be absent, and 2 where keys and values lie apart"),
    field<ValueLayoutField>("value_layout", "layout, or an order of axes as layout takes it",
                            "axes of the values' tensor, where keys and values lie apart", "layout", is_apart),
};

/// The fields of a Relayout's destination.
constexpr std::array kToFields = {
    field<ToNamedField<&KernelSpec::to_t2, kCacheTypes>>("to_t2", "same | auto | f32 | f16 | bf16 | i8",
                                                         "Relayout: t2 of the cache that it copies to"),
    field<ToNamedField<&KernelSpec::to_t3, kScaleTypes>>("to_t3", "same | auto | f32 | f16 | bf16",
                                                         "its quantisation scales", "to_quant_bit",
                                                         of_destination<is_quantised>),
    field<ToNamedField<&KernelSpec::to_quant_bit, kQuantBits>>("to_quant_bit", "same | 0 | 8 | 4",
                                                               "bits of its codes; 0: none"),
    field<ToNumberField<&KernelSpec::to_quant_group, 4, 512>>(
        "to_quant_group", "same, head_dim (up to 512), or a power of two from 4 that divides it",
        "its elements that share a scale", "to_quant_bit", of_destination<is_quantised>),
    field<ToNamedField<&KernelSpec::to_cache_mode, kModes>>(
        "to_cache_mode", "same | offset | token_table | page_table | block_table | block_pointers | sequence_table",
        "where position t of a sequence lies in it"),
    field<ToNumberField<&KernelSpec::to_page_size, 1, 1 << 20>>("to_page_size", "same, or 1 to 1048576",
                                                                "tokens of its pages or blocks", "to_cache_mode",
                                                                of_destination<is_paged>),
    field<ToNamedField<&KernelSpec::to_index_type, kIndexTypes>>("to_index_type", "same | i64 | i32",
                                                                 "elements of its cachestarts", "to_cache_mode",
                                                                 of_destination<has_indices>),
    field<ToLayoutField>("to_layout", "same, or what layout takes", "its axes"),
    field<ToValueLayoutField>("to_value_layout", "layout, or an order of axes", "and those of its values", "to_layout",
                              has_own_pair),
};

constexpr std::array kFields = joined(kFirstFields, kScoreFields, kLayoutFields, kToFields);

bool is_score_rule(const Field& row) {
    return std::ranges::find(kScoreFields, row.name, &Field::name) != kScoreFields.end();
}

}  // namespace

std::string_view own_value_axes(const KernelSpec& spec, SpecText values, SpecText keys) {
    const std::string_view own = text_of(spec, values), of_keys = text_of(spec, keys);
    return own == of_keys && !of_keys.contains('2') ? "" : own;
}

std::span<const Field> spec_fields() {
    return kFields;
}

const Field* find_field(std::string_view name) {
    const auto it = std::ranges::find(kFields, name, &Field::name);
    return it == kFields.end() ? nullptr : &*it;
}

bool counts_for_op(const Field& row, const Operator& op) {
    for (std::string_view rest = op.fields; !rest.empty();) {
        const std::string_view name = rest.substr(0, rest.find(' '));
        rest.remove_prefix(std::min(name.size() + 1, rest.size()));
        if (name == row.name || (name == "score_rules" && is_score_rule(row))) return true;
    }
    return &row == &kFields.front();
}

bool counts(const Field& row, const KernelSpec& spec) {
    return counts_for_op(row, operator_of(spec)) && (row.counts == nullptr || row.counts(spec));
}

}  // namespace kvjit::gen
