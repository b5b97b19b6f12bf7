#include "generator/spec.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <tuple>

#include "generator/field.h"
#include "generator/layouts.h"
#include "generator/operator.h"
#include "generator/score_rules.h"

namespace kvjit::gen {
namespace {

constexpr Name named(kvjit_dtype type) {
    return {dtype_name(type), type};
}
constexpr Name kInputTypes[] = {named(KVJIT_F32), named(KVJIT_F16), named(KVJIT_I8)};
constexpr Name kCacheTypes[] = {named(KVJIT_AUTO), named(KVJIT_F32), named(KVJIT_F16), named(KVJIT_I8)};
constexpr Name kScaleTypes[] = {named(KVJIT_AUTO), named(KVJIT_F32), named(KVJIT_F16)};
constexpr Name kIndexTypes[] = {named(KVJIT_I64), named(KVJIT_I32)};
constexpr Name kModes[] = {{"offset", KVJIT_OFFSET},
                           {"token_table", KVJIT_TOKEN_TABLE},
                           {"page_table", KVJIT_PAGE_TABLE},
                           {"block_table", KVJIT_BLOCK_TABLE},
                           {"block_pointers", KVJIT_BLOCK_POINTERS},
                           {"sequence_table", KVJIT_SEQUENCE_TABLE}};
constexpr Name kQuantBits[] = {{"0", 0}, {"8", 8}, {"4", 4}};

/// Some of N, T, L, 2, H, D, no letter twice; T, H and D are always there. D and T may be split: further on stands d or
/// t with the extent of its inner part.
bool is_axis_order(std::string_view layout) {
    const std::optional<Axes> axes = parse_axes(layout);
    if (!axes) return false;
    const std::string_view order = axes->order();
    for (std::size_t i = 0; i < order.size(); ++i) {
        if (!std::string_view("NTL2HDtd").contains(order[i]) || order.find(order[i], i + 1) != order.npos) return false;
    }
    const auto split = [&](char inner, char outer) {
        return !axes->has(inner) || axes->find(inner) > axes->find(outer);
    };
    return axes->has('T') && axes->has('H') && axes->has('D') && split('t', 'T') && split('d', 'D');
}

/// What the names of fields of a Relayout's destination begin with.
constexpr std::string_view kTo = "to_";

/// A field of the source, and the destination's.
struct Mirrored {
    SpecMember member, to;
};
constexpr Mirrored kMirrored[] = {
    {&KernelSpec::t2, &KernelSpec::to_t2},
    {&KernelSpec::t3, &KernelSpec::to_t3},
    {&KernelSpec::quant_bit, &KernelSpec::to_quant_bit},
    {&KernelSpec::quant_group, &KernelSpec::to_quant_group},
    {&KernelSpec::cache_mode, &KernelSpec::to_cache_mode},
    {&KernelSpec::page_size, &KernelSpec::to_page_size},
    {&KernelSpec::index_type, &KernelSpec::to_index_type},
};

template <std::size_t N>
void set_text(char (&to)[N], std::string_view text) {
    std::ranges::fill(to, '\0');
    std::ranges::copy(text, to);
}

constexpr std::string_view kLayout = "layout", kToLayout = "to_layout", kDefaultLayout = "TL2HD";
/// What stands for the field of the same name without to_.
constexpr std::string_view kSameField = "same";

using SpecText = char (KernelSpec::*)[16];

std::string_view text_of(const KernelSpec& spec, SpecText member) {
    return {spec.*member, strnlen(spec.*member, sizeof(spec.*member))};
}

/// An order of axes. `kEmpty`: what an empty one is in text; "": it must not be empty. kNames: it takes names, too.
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
};
constexpr std::string_view kNeverEmpty;
using LayoutField = AxesField<&KernelSpec::layout, kNeverEmpty, true>;
/// Of values, where they lie apart from keys and in another order.
template <SpecText kValues, SpecText kKeys>
struct ValuesField : AxesField<kValues, kLayout, false> {
    /// Empty: as the layout of keys has it, which may have been said by its letters.
    static std::string_view axes(const KernelSpec& spec) {
        const std::string_view values = text_of(spec, kValues), keys = text_of(spec, kKeys);
        return values == keys && !keys.contains('2') ? "" : values;
    }
    static std::string print(const KernelSpec& spec) { return std::string(axes(spec).empty() ? kLayout : axes(spec)); }
};
using ValueLayoutField = ValuesField<&KernelSpec::value_layout, &KernelSpec::layout>;
using ToValueLayoutField = ValuesField<&KernelSpec::to_value_layout, &KernelSpec::to_layout>;
using ToLayoutField = AxesField<&KernelSpec::to_layout, kSameField, true>;

/// A field of Relayout's destination that takes what F takes, or "same".
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
};
template <SpecMember kMember, auto& kNames>
using ToNamedField = ToField<kMember, NamedField<kMember, kNames>>;
template <SpecMember kMember, std::int32_t kMin, std::int32_t kMax>
using ToNumberField = ToField<kMember, NumberField<kMember, kMin, kMax>>;

/// A question that is asked of a spec, asked of a Relayout's destination.
template <bool (*kAsked)(const KernelSpec&)>
bool of_destination(const KernelSpec& spec) {
    return kAsked(destination_of(spec));
}

/// 0, or what head_dim takes.
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
};

bool is_quantised(const KernelSpec& spec) {
    return spec.quant_bit != 0;
}

constexpr std::int64_t kWholeSequence = 0, kPageSize = -1;

/// What a cache mode means.
struct Mode {
    std::int64_t tokens;  // that an entry stands for; kPageSize: the spec says how many
    abi::Entries entries;
    bool counts_tokens;  // the batch's max_tokens says how many the cache has, or a sequence's block
};
/// In the order of kvjit_cache_mode.
constexpr Mode kModeMeanings[] = {
    {kWholeSequence, abi::Entries::kTokens, true}, {1, abi::Entries::kTokens, true},
    {kPageSize, abi::Entries::kTokens, true},      {kPageSize, abi::Entries::kBlocks, false},
    {kPageSize, abi::Entries::kAddresses, false},  {kWholeSequence, abi::Entries::kBlocks, true}};

/// The mode is legal.
const Mode& mode_of(const KernelSpec& spec) {
    return kModeMeanings[spec.cache_mode];
}

/// Entries are indices, not addresses.
bool has_indices(const KernelSpec& spec) {
    return spec.cache_mode != KVJIT_BLOCK_POINTERS;
}

/// A Relayout's destination has a layout of its own, with keys and values apart.
bool has_own_pair(const KernelSpec& spec) {
    return !text_of(spec, &KernelSpec::to_layout).empty() && is_apart(destination_of(spec));
}

/// Whether it holds for the axes of the layout, or for those of the values' own.
template <class Holds>
bool of_either_layout(const KernelSpec& spec, Holds&& holds) {
    return has_cache(spec) &&
           (holds(axes_of(layout_axes(spec))) || holds(axes_of(text_of(spec, &KernelSpec::value_layout))));
}

/// Whether the inner part `axis` of a split axis of either layout doesn't divide `extent`.
bool splits_badly(const KernelSpec& spec, char axis, std::int64_t extent) {
    return of_either_layout(spec, [&](const Axes& axes) { return axes.has(axis) && extent % axes.extent(axis) != 0; });
}

/// Whether the elements of a piece, of a row that is cut, lie apart.
bool cuts_pieces(const Axes& axes) {
    return axes.has('d') && !axes.order().ends_with('d');
}

/// Whether entries of the table are blocks of page_size tokens.
bool has_paged_blocks(const KernelSpec& spec) {
    return is_paged(spec) && table_entries(spec) != abi::Entries::kTokens;
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
        "t1", "f32 | f16 | i8", "query, new keys and values, mask, outputs; i8: KeyValueCache and Relayout only"),
    field<NamedField<&KernelSpec::t2, kCacheTypes>>("t2", "auto | f32 | f16 | i8",
                                                    "cache elements when quant_bit is 0; auto: t1"),
    field<NamedField<&KernelSpec::t3, kScaleTypes>>("t3", "auto | f32 | f16", "quantisation scales; auto: t1",
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

/// A rule's field stands with the rule.
constexpr std::array kScoreFields =
    std::apply([](const auto&... rules) { return std::array{rules.field...}; }, kScoreRules);

constexpr std::string layout_takes() {
    return "an order of T, L, 2, H, D (block_table: and N); NHDTd8 splits D; or a name (" + layout_families() +
           "; kvjit spec list layouts has them), PMX's also as 0..3, r1:0..r1:3";
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

/// Of the cache that a Relayout copies to.
constexpr std::array kToFields = {
    field<ToNamedField<&KernelSpec::to_t2, kCacheTypes>>("to_t2", "same | auto | f32 | f16 | i8",
                                                         "Relayout: t2 of the cache that it copies to"),
    field<ToNamedField<&KernelSpec::to_t3, kScaleTypes>>("to_t3", "same | auto | f32 | f16", "its quantisation scales",
                                                         "to_quant_bit", of_destination<is_quantised>),
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

template <std::size_t... kSizes>
constexpr auto joined(const std::array<Field, kSizes>&... parts) {
    std::array<Field, (kSizes + ...)> all{};
    auto end = all.begin();
    ((end = std::ranges::copy(parts, end).out), ...);
    return all;
}
constexpr std::array kFields = joined(kFirstFields, kScoreFields, kLayoutFields, kToFields);

/// What fields may not be together. The first broken rule is the error.
struct Rule {
    std::string_view field;
    bool (*broken)(const KernelSpec&);
    std::string_view says;
    SpecMember limit = nullptr;  // goes behind what the rule says
};

constexpr Rule kRules[] = {
    {"t1", [](const KernelSpec& s) { return s.t1 == KVJIT_I8 && (attends(s) || !has_cache(s)); },
     "i8 codes can be moved but not attended to; it takes op=KeyValueCache or Relayout"},
    {"quant_bit", [](const KernelSpec& s) { return s.t1 == KVJIT_I8 && is_quantised(s); },
     "with t1=i8 the codes are moved as they are; it takes 0"},
    {"t2", [](const KernelSpec& s) { return has_cache(s) && is_quantised(s) && s.t2 != KVJIT_AUTO; },
     "quant_bit says what a quantised cache holds; it takes auto"},
    {"t2",
     [](const KernelSpec& s) {
         return has_cache(s) && !is_quantised(s) && (cache_type(s) == KVJIT_I8) != (s.t1 == KVJIT_I8);
     },
     "i8 without quant_bit goes with t1=i8, and only with it"},
    {"quant_group",
     [](const KernelSpec& s) {
         const bool power = (s.quant_group & (s.quant_group - 1)) == 0;
         return is_quantised(s) && s.quant_group != s.head_dim && !(power && s.head_dim % s.quant_group == 0);
     },
     "it takes head_dim, or a power of two from 4 that divides head_dim, which is", &KernelSpec::head_dim},
    {"layout", [](const KernelSpec& s) { return has_cache(s) && layout_axes(s).contains('N') != has_num_blocks(s); },
     "axis N stands in the layout of a block_table or sequence_table, and only there"},
    {"layout", [](const KernelSpec& s) { return table_entries(s) == abi::Entries::kAddresses && is_apart(s); },
     "blocks that lie anywhere hold both keys and values, so axis 2 stands in it"},
    {"value_layout",
     [](const KernelSpec& s) {
         const Axes values = axes_of(text_of(s, &KernelSpec::value_layout));
         return values.rank != 0 && (values.has('2') || values.has('N') != has_num_blocks(s) ||
                                     values.has('L') != axes_of(layout_axes(s)).has('L'));
     },
     "it has no axis 2, and N and L where layout has them"},
    {"layout", [](const KernelSpec& s) { return of_either_layout(s, cuts_pieces); },
     "the elements of a piece of D are neighbours, so d is the last axis"},
    {"layout", [](const KernelSpec& s) { return splits_badly(s, 'd', s.head_dim); },
     "the pieces of a split axis D must make up head_dim, which is", &KernelSpec::head_dim},
    {"layout",
     [](const KernelSpec& s) {
         return !has_paged_blocks(s) && of_either_layout(s, [](const Axes& axes) { return axes.has('t'); });
     },
     "a split axis T is that of blocks of page_size tokens, block_table's or block_pointers'"},
    {"layout", [](const KernelSpec& s) { return has_paged_blocks(s) && splits_badly(s, 't', s.page_size); },
     "the pieces of a split axis T must make up page_size, which is", &KernelSpec::page_size},
    {"quant_bit",
     [](const KernelSpec& s) {
         return is_quantised(s) && of_either_layout(s, [](const Axes& axes) {
                    return axes.rank != 0 && (axes.has('t') || !axes.order().ends_with('D'));
                });
     },
     "scales follow rows in one piece, not those of a layout that splits axes or has D elsewhere; it takes 0"},
};

bool is_score_rule(const Field& row) {
    return std::ranges::find(kScoreFields, row.name, &Field::name) != kScoreFields.end();
}

/// "op" counts always.
bool counts_for_op(const Field& row, const Operator& op) {
    for (std::string_view rest = op.fields; !rest.empty();) {
        const std::string_view name = rest.substr(0, rest.find(' '));
        rest.remove_prefix(std::min(name.size() + 1, rest.size()));
        if (name == row.name || (name == "score_rules" && is_score_rule(row))) return true;
    }
    return &row == &kFields.front();
}

const Field* find_field(std::string_view name) {
    const auto it = std::ranges::find(kFields, name, &Field::name);
    return it == kFields.end() ? nullptr : &*it;
}

std::optional<std::int64_t> number_of(std::string_view text) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return number;
}

std::string quoted(std::string_view text) {
    return "\"" + std::string(text) + "\"";
}

/// `shown` is the value as the message has it.
std::unexpected<Error> refuse(const Field& row, std::string_view shown, std::string_view says,
                              std::optional<std::int64_t> value, std::int64_t limit) {
    return fail(KVJIT_BAD_SPEC, std::string(row.name),
                std::string(row.name) + " is " + std::string(shown) + "; " + std::string(says), value.value_or(0),
                limit);
}

/// For a value that the field doesn't take, whatever the others are.
std::unexpected<Error> refuse_value(const Field& row, std::string_view shown, std::optional<std::int64_t> value) {
    return refuse(row, shown, "it takes " + std::string(row.takes), value, value ? row.limit(*value) : 0);
}

/// `side`: of which field's cache, "to_" of a Relayout's destination.
std::unexpected<Error> refuse_broken(const Rule& rule, const KernelSpec& spec, std::string_view side) {
    Field row = *find_field(rule.field);
    const Field* own = find_field(std::string(side).append(rule.field));
    if (own != nullptr) row.name = own->name;
    const std::string value = row.print(spec);
    const std::int64_t limit = rule.limit == nullptr ? 0 : spec.*rule.limit;
    std::string says(rule.says);
    if (rule.limit != nullptr) says += " " + std::to_string(limit);
    return refuse(row, value, says, number_of(value), limit);
}

/// Whether the field means anything beside the others.
bool counts(const Field& row, const KernelSpec& spec) {
    return counts_for_op(row, operator_of(spec)) && (row.counts == nullptr || row.counts(spec));
}

/// What to do about a field that counts for nothing.
constexpr std::string_view kLeaveItOut = " (leave it out)";  // of a text
constexpr std::string_view kResetIt = " (kvjit_spec_for_op resets what an operator doesn't use)";

/// A mistake, since it would change nothing: an engine that thinks it quantises must hear that it doesn't.
std::unexpected<Error> refuse_useless(const Field& row, const KernelSpec& spec, const KernelSpec& defaults,
                                      std::string_view advice) {
    const Field& decides = *find_field(counts_for_op(row, operator_of(spec)) ? row.decides : "op");
    const std::string value = row.print(spec), kept = row.print(defaults);
    const std::string says = std::string(decides.name) + "=" + decides.print(spec) + " has no use for it; it takes " +
                             kept + std::string(advice);
    return refuse(row, value, says, number_of(value), number_of(kept).value_or(0));
}

std::unexpected<Error> unknown_field(std::string_view name) {
    std::string says = "unknown field " + quoted(name) + "; the fields are";
    for (const Field& row : kFields) says.append(&row == &kFields.front() ? " " : ", ").append(row.name);
    return fail(KVJIT_BAD_SPEC, std::string(name), says);
}

Result<void> check_legal(const KernelSpec& spec) {
    for (const Field& row : kFields) {
        if (!row.legal(spec)) return refuse_value(row, row.print(spec), number_of(row.print(spec)));
    }
    return {};
}

Result<void> check_rules(const KernelSpec& spec, std::string_view side) {
    for (const Rule& rule : kRules) {
        if (rule.broken(spec)) return refuse_broken(rule, spec, side);
    }
    return {};
}

Result<void> validate(const KernelSpec& spec, std::string_view advice) {
    if (auto legal = check_legal(spec); !legal) return legal;
    const KernelSpec defaults = default_spec();
    for (const Field& row : kFields) {
        if (!counts(row, spec) && row.print(spec) != row.print(defaults))
            return refuse_useless(row, spec, defaults, advice);
    }
    if (auto rules = check_rules(source_of(spec), ""); !rules) return rules;
    return is_relayout(spec) ? check_rules(destination_of(spec), kTo) : Result<void>();
}

/// With the types that "auto" stands for.
KernelSpec with_types(const KernelSpec& spec) {
    KernelSpec resolved = spec;
    if (!is_quantised(spec)) resolved.t2 = cache_type(spec);
    if (is_quantised(spec)) resolved.t3 = scale_type(spec);
    return resolved;
}

/// What a text gives.
struct Given {
    KernelSpec spec = default_spec();
    std::array<bool, kFields.size()> seen{};
    const NamedLayout* named = nullptr;     // by which the layout was given
    const NamedLayout* to_named = nullptr;  // and to_layout

    bool& saw(const Field& row) { return seen[static_cast<std::size_t>(&row - kFields.data())]; }
};

/// Reads one `field=value`. No field is given twice.
Result<void> parse_pair(std::string_view pair, Given& given) {
    const std::size_t equals = pair.find('=');
    if (equals == pair.npos) {
        return fail(KVJIT_BAD_SPEC, std::string(pair), quoted(pair) + " is no field=value pair");
    }
    const Field* row = find_field(pair.substr(0, equals));
    if (row == nullptr) return unknown_field(pair.substr(0, equals));
    const std::string_view value = pair.substr(equals + 1);
    if (given.saw(*row)) return refuse(*row, value, "it was given before, give it once", number_of(value), 0);
    given.saw(*row) = true;
    if (!row->parse(value, given.spec)) return refuse_value(*row, quoted(value), number_of(value));
    if (row->name == kLayout) given.named = find_layout(value);
    if (row->name == kToLayout) given.to_named = find_layout(value);
    return {};
}

/// The name by which a layout was given, and what the fields that it sets begin with.
struct Preset {
    const NamedLayout* named;  // null: it was given by its axes
    std::string_view prefix;   // "", or "to_" of to_layout
};

/// Of a field that the layout's name sets to `wanted`, too, and that was given.
Result<void> check_preset(const Field& row, std::string_view wanted, const Preset& preset, const KernelSpec& spec) {
    const std::string value = row.print(spec);
    if (value == wanted) return {};
    const std::string layout = std::string(preset.prefix).append(kLayout);
    return refuse(row, value,
                  layout + "=" + std::string(preset.named->name) + " sets it to " + std::string(wanted) +
                      "; leave it out, or give the order alone, " + layout + "=" + std::string(preset.named->order),
                  number_of(value), number_of(wanted).value_or(0));
}

/// Sets what the layout's name sets besides, as far as the operator has a use for it.
Result<void> apply_name(const Preset& preset, Given& given) {
    for (std::string_view rest = preset.named == nullptr ? "" : preset.named->sets; !rest.empty();) {
        const std::string_view pair = rest.substr(0, rest.find(','));
        rest.remove_prefix(std::min(pair.size() + 1, rest.size()));
        const std::string_view value = pair.substr(pair.find('=') + 1);
        const Field& row = *find_field(std::string(preset.prefix).append(pair.substr(0, pair.find('='))));
        if (!counts_for_op(row, operator_of(given.spec))) continue;
        if (!given.saw(row)) row.parse(value, given.spec);
        if (auto agrees = check_preset(row, value, preset, given.spec); !agrees) return agrees;
    }
    return {};
}

}  // namespace

std::span<const Field> spec_fields() {
    return kFields;
}

KernelSpec default_spec() {
    KernelSpec spec{};
    spec.struct_size = sizeof spec;
    spec.op = KVJIT_OP_MULTI_HEAD_CACHE_ATTENTION;
    spec.head_dim = 128;
    spec.group = 1;
    spec.t1 = KVJIT_F16;
    spec.quant_group = 8;
    spec.page_size = 128;
    spec.index_type = KVJIT_I64;
    spec.starts_type = KVJIT_I64;
    spec.is_causal = 1;
    set_text(spec.layout, kDefaultLayout);
    for (const Mirrored& field : kMirrored) spec.*field.to = KVJIT_SAME;
    return spec;
}

Result<KernelSpec> parse_fields(std::string_view text) {
    constexpr std::string_view kSeparators = ", \t\r\n";
    Given given;
    while (true) {
        text.remove_prefix(std::min(text.find_first_not_of(kSeparators), text.size()));
        if (text.empty()) break;
        const std::string_view pair = text.substr(0, text.find_first_of(kSeparators));
        text.remove_prefix(pair.size());
        if (auto parsed = parse_pair(pair, given); !parsed) return std::unexpected(parsed.error());
    }
    for (const Preset& preset : {Preset{given.named, ""}, Preset{given.to_named, kTo}}) {
        if (auto applied = apply_name(preset, given); !applied) return std::unexpected(applied.error());
    }
    if (ValueLayoutField::axes(given.spec).empty()) set_text(given.spec.value_layout, "");
    if (ToValueLayoutField::axes(given.spec).empty()) set_text(given.spec.to_value_layout, "");
    return given.spec;
}

Result<KernelSpec> parse_spec(std::string_view text) {
    Result<KernelSpec> spec = parse_fields(text);
    if (!spec) return spec;
    if (auto valid = validate(*spec, kLeaveItOut); !valid) return std::unexpected(valid.error());
    return spec;
}

std::string print_spec(const KernelSpec& spec) {
    const KernelSpec defaults = default_spec();
    std::string text;
    for (const Field& row : kFields) {
        const std::string value = row.print(spec);
        if (&row != &kFields.front() && value == row.print(defaults)) continue;
        if (!text.empty()) text += ',';
        text.append(row.name).append("=").append(value);
    }
    return text;
}

KernelSpec without_useless(const KernelSpec& spec) {
    const KernelSpec defaults = default_spec();
    KernelSpec reset = spec;
    // In two rounds: what the operator has no use for may have decided on another field.
    for (int round = 0; round < 2; ++round) {
        for (const Field& row : kFields) {
            if (!counts(row, reset)) row.parse(row.print(defaults), reset);
        }
    }
    return reset;
}

Result<KernelSpec> spec_for_op(const KernelSpec& spec, kvjit_op op) {
    KernelSpec reset = spec;
    reset.op = op;
    if (auto legal = check_legal(reset); !legal) return std::unexpected(legal.error());
    reset = without_useless(reset);
    if (auto valid = validate_spec(reset); !valid) return std::unexpected(valid.error());
    return reset;
}

Result<KernelSpec> relayout_spec(const KernelSpec& from, const KernelSpec& to) {
    for (const auto& [spec, name] : {std::pair(&from, "from"), std::pair(&to, "to")}) {
        if (auto valid = validate_spec(*spec); !valid) return std::unexpected(valid.error());
        if (!has_cache(*spec) || is_relayout(*spec))
            return fail(KVJIT_BAD_SPEC, name,
                        std::string(name) + " is of op " + std::string(operator_of(*spec).name) +
                            "; a relayout takes specs of KeyValueCache or MultiHeadCacheAttention");
    }
    for (const std::string_view name : {"head_dim", "starts_type"}) {
        const Field& row = *find_field(name);
        if (row.print(from) != row.print(to))
            return refuse(row, row.print(to), "from's is " + row.print(from) + ", which a relayout doesn't change",
                          number_of(row.print(to)), number_of(row.print(from)).value_or(0));
    }
    KernelSpec spec = default_spec();
    spec.op = KVJIT_OP_RELAYOUT;
    spec.head_dim = from.head_dim;
    spec.starts_type = from.starts_type;
    const std::int32_t types[] = {from.t1, to.t1, cache_type(from), cache_type(to)};
    spec.t1 = std::ranges::count(types, KVJIT_F32) != 0 ? std::int32_t{KVJIT_F32} : from.t1;
    const KernelSpec source = with_types(from), destination = with_types(to);
    for (const Mirrored& field : kMirrored) {
        spec.*field.member = source.*field.member;
        if (destination.*field.member != source.*field.member) spec.*field.to = destination.*field.member;
    }
    set_text(spec.layout, layout_axes(from));
    set_text(spec.value_layout, text_of(from, &KernelSpec::value_layout));
    if (layout_axes(from) != layout_axes(to) || value_axes(from) != value_axes(to)) {
        set_text(spec.to_layout, layout_axes(to));
        set_text(spec.to_value_layout, text_of(to, &KernelSpec::value_layout));
    }
    spec = without_useless(spec);
    if (auto valid = validate_spec(spec); !valid) return std::unexpected(valid.error());
    return spec;
}

Result<void> validate_spec(const KernelSpec& spec) {
    return validate(spec, kResetIt);
}

bool is_relayout(const KernelSpec& spec) {
    return spec.op == KVJIT_OP_RELAYOUT;
}

KernelSpec source_of(const KernelSpec& spec) {
    KernelSpec source = spec;
    for (const Mirrored& field : kMirrored) source.*field.to = KVJIT_SAME;
    set_text(source.to_layout, "");
    set_text(source.to_value_layout, "");
    return source;
}

KernelSpec destination_of(const KernelSpec& spec) {
    KernelSpec destination = source_of(spec);
    for (const Mirrored& field : kMirrored) {
        if (spec.*field.to != KVJIT_SAME) destination.*field.member = spec.*field.to;
    }
    // What a quantised cache holds, its bits say; and addresses have one type.
    if (destination.quant_bit != 0 && spec.to_t2 == KVJIT_SAME) destination.t2 = KVJIT_AUTO;
    if (!has_indices(destination) && spec.to_index_type == KVJIT_SAME) destination.index_type = KVJIT_I64;
    if (!text_of(spec, &KernelSpec::to_layout).empty()) {
        set_text(destination.layout, text_of(spec, &KernelSpec::to_layout));
        set_text(destination.value_layout, text_of(spec, &KernelSpec::to_value_layout));
    }
    return destination;
}

bool has_cache(const KernelSpec& spec) {
    return operator_of(spec).keys == Keys::kCache;
}

bool is_paged(const KernelSpec& spec) {
    return mode_of(spec).tokens == kPageSize;
}

std::int64_t page_tokens(const KernelSpec& spec) {
    if (!has_cache(spec)) return 0;
    return is_paged(spec) ? spec.page_size : mode_of(spec).tokens;
}

abi::Entries table_entries(const KernelSpec& spec) {
    return has_cache(spec) ? mode_of(spec).entries : abi::Entries::kTokens;
}

bool has_max_tokens(const KernelSpec& spec) {
    return has_cache(spec) && mode_of(spec).counts_tokens;
}

bool has_num_blocks(const KernelSpec& spec) {
    return table_entries(spec) == abi::Entries::kBlocks;
}

bool has_cache_tensors(const KernelSpec& spec) {
    return has_cache(spec) && table_entries(spec) != abi::Entries::kAddresses;
}

bool is_apart(const KernelSpec& spec) {
    return !axes_of(layout_axes(spec)).has('2');
}

bool has_scale_table(const KernelSpec& spec) {
    return table_entries(spec) == abi::Entries::kAddresses && is_quantised(spec);
}

kvjit_dtype cache_type(const KernelSpec& spec) {
    if (spec.quant_bit == 8) return KVJIT_I8;
    if (spec.quant_bit == 4) return KVJIT_U8;
    return static_cast<kvjit_dtype>(spec.t2 == KVJIT_AUTO ? spec.t1 : spec.t2);
}

kvjit_dtype scale_type(const KernelSpec& spec) {
    return static_cast<kvjit_dtype>(spec.t3 == KVJIT_AUTO ? spec.t1 : spec.t3);
}

std::string_view value_axes(const KernelSpec& spec) {
    const std::string_view axes = text_of(spec, &KernelSpec::value_layout);
    return is_apart(spec) && !axes.empty() ? axes : layout_axes(spec);
}

std::int64_t code_elements(const KernelSpec& spec) {
    return cache_type(spec) == KVJIT_U8 ? spec.head_dim / 2 : spec.head_dim;
}

std::int64_t scale_elements(const KernelSpec& spec) {
    return spec.head_dim / spec.quant_group;
}

bool is_head_inner(const KernelSpec& spec) {
    return !has_cache(spec) || layout_axes(spec).find('H') > layout_axes(spec).find('T');
}

std::int32_t Axes::find(char letter) const {
    const std::size_t at = order().find(letter);
    return at == std::string_view::npos ? -1 : static_cast<std::int32_t>(at);
}

std::int32_t Axes::extent(char letter) const {
    const std::int32_t at = find(letter);
    return at < 0 ? 0 : inner[static_cast<std::size_t>(at)];
}

std::optional<Axes> parse_axes(std::string_view layout) {
    Axes axes;
    while (!layout.empty()) {
        if (axes.rank == KVJIT_MAX_RANK) return std::nullopt;
        const char letter = layout.front();
        layout.remove_prefix(1);
        std::int32_t extent = 0;
        if (letter == 'd' || letter == 't') {
            const auto [end, error] = std::from_chars(layout.data(), layout.data() + layout.size(), extent);
            if (error != std::errc() || extent < 1 || layout.front() == '0') return std::nullopt;
            layout.remove_prefix(static_cast<std::size_t>(end - layout.data()));
        }
        const auto at = static_cast<std::size_t>(axes.rank++);
        axes.letters[at] = letter;
        axes.inner[at] = extent;
    }
    return axes;
}

Axes axes_of(std::string_view layout) {
    return *parse_axes(layout);
}

Cut whole(const KernelSpec& spec) {
    return {spec.head_dim, 0};
}

Cut cut_of(const KernelSpec& spec, int part) {
    const Axes axes = axes_of(part == 0 ? layout_axes(spec) : value_axes(spec));
    Cut cut = whole(spec);
    if (axes.has('d'))
        cut.elements = axes.extent('d');
    else if (!axes.order().ends_with('D'))
        cut.elements = 1;
    if (axes.extent('t') != spec.page_size) cut.tokens = axes.extent('t');
    return cut;
}

std::string_view layout_axes(const KernelSpec& spec) {
    return text_of(spec, &KernelSpec::layout);
}

}  // namespace kvjit::gen
