// What a spec's fields allow, alone and together, and the errors for everything else.
#include <charconv>

#include "generator/nearest.h"
#include "spec_parts.h"

namespace kvjit::gen {
namespace {

/// Whether it holds for the axes of the layout, or for those of value_layout.
template <class Holds>
bool of_either_layout(const KernelSpec& spec, Holds&& holds) {
    return has_cache(spec) &&
           (holds(axes_of(layout_axes(spec))) || holds(axes_of(text_of(spec, &KernelSpec::value_layout))));
}

/// Whether the inner part `axis` of a split axis of either layout doesn't divide `extent`.
bool splits_badly(const KernelSpec& spec, char axis, std::int64_t extent) {
    return of_either_layout(spec, [&](const Axes& axes) { return axes.has(axis) && extent % axes.extent(axis) != 0; });
}

/// Whether a split row's pieces have elements that are not contiguous.
bool cuts_pieces(const Axes& axes) {
    return axes.has('d') && !axes.order().ends_with('d');
}

/// Whether entries of the table are blocks of page_size tokens.
bool has_paged_blocks(const KernelSpec& spec) {
    return is_paged(spec) && table_entries(spec) != abi::Entries::kTokens;
}

/// A combination of fields that is refused. The first broken rule is the error.
struct Rule {
    std::string_view field;
    bool (*broken)(const KernelSpec&);
    std::string_view says;
    SpecMember limit = nullptr;                                                // appended to the rule's text
    std::string (*meant)(const KernelSpec&, std::string_view side) = nullptr;  // what may have been meant
};

constexpr std::string_view kBlocksLayout = "N2HTD";

/// Precondition: the layout has an axis N where the cache has none, or the other way round. Without an own layout the
/// default may have been overlooked.
std::string meant_blocks(const KernelSpec& spec, std::string_view side) {
    const std::string prefix(side), axes(layout_axes(spec));
    if (axes.contains('N')) return did_you_mean(prefix + "cache_mode=block_table");
    if (axes != layout_axes(default_spec())) return did_you_mean(prefix + "layout=N" + axes);
    return (side.empty() ? "; " + axes + " is the default" : "") +
           did_you_mean(prefix + "layout=" + std::string(kBlocksLayout));
}

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
     "axis N stands in the layout of a block_table or sequence_table, and only there", nullptr, meant_blocks},
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

/// `side`: the prefix of the cache's fields, "to_" for a Relayout's destination.
std::unexpected<Error> refuse_broken(const Rule& rule, const KernelSpec& spec, std::string_view side) {
    Field row = *find_field(rule.field);
    const Field* own = find_field(std::string(side).append(rule.field));
    if (own != nullptr) row.name = own->name;
    const std::string value = row.print(spec);
    const std::int64_t limit = rule.limit == nullptr ? 0 : spec.*rule.limit;
    std::string says(rule.says);
    if (rule.limit != nullptr) says += " " + std::to_string(limit);
    if (rule.meant != nullptr) says += rule.meant(spec, side);
    return refuse(row, value, says, number_of(value), limit);
}

constexpr std::string_view kResetIt = " (kvjit_spec_for_op resets what an operator doesn't use)";

/// A field that doesn't count is an error: an engine that believes it quantises must learn that it doesn't.
std::unexpected<Error> refuse_useless(const Field& row, const KernelSpec& spec, const KernelSpec& defaults,
                                      std::string_view advice) {
    const Field& decides = *find_field(counts_for_op(row, operator_of(spec)) ? row.decides : "op");
    const std::string value = row.print(spec), kept = row.print(defaults);
    const std::string says = std::string(decides.name) + "=" + decides.print(spec) + " has no use for it; it takes " +
                             kept + std::string(advice);
    return refuse(row, value, says, number_of(value), number_of(kept).value_or(0));
}

Result<void> check_rules(const KernelSpec& spec, std::string_view side) {
    for (const Rule& rule : kRules) {
        if (rule.broken(spec)) return refuse_broken(rule, spec, side);
    }
    return {};
}

}  // namespace

std::optional<std::int64_t> number_of(std::string_view text) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return number;
}

std::unexpected<Error> refuse(const Field& row, std::string_view shown, std::string_view says,
                              std::optional<std::int64_t> value, std::int64_t limit) {
    return fail(
        KVJIT_BAD_SPEC, std::string(row.name),
        std::string(row.name) + " is " + std::string(shown.empty() ? "empty" : shown) + "; " + std::string(says),
        value.value_or(0), limit);
}

std::unexpected<Error> refuse_value(const Field& row, std::string_view shown, std::optional<std::int64_t> value) {
    return refuse(row, shown, "it takes " + std::string(row.takes), value, value ? row.limit(*value) : 0);
}

/// An order that fills its array may be the beginning of a longer one.
Result<void> check_ends(const KernelSpec& spec) {
    constexpr struct {
        std::string_view name;
        SpecText member;
    } kOrders[] = {{kLayout, &KernelSpec::layout},
                   {"value_layout", &KernelSpec::value_layout},
                   {"to_layout", &KernelSpec::to_layout},
                   {"to_value_layout", &KernelSpec::to_value_layout}};
    for (const auto& [name, member] : kOrders) {
        const std::string_view order = text_of(spec, member);
        const std::size_t most = sizeof(spec.*member) - 1;
        if (order.size() <= most) continue;
        return refuse(*find_field(name), order,
                      "it has " + std::to_string(order.size()) + " characters and no NUL; it takes at most " +
                          std::to_string(most),
                      order.size(), most);
    }
    return {};
}

Result<void> check_legal(const KernelSpec& spec) {
    if (auto ended = check_ends(spec); !ended) return ended;
    for (const Field& row : spec_fields()) {
        if (!row.legal(spec)) return refuse_value(row, row.print(spec), number_of(row.print(spec)));
    }
    return {};
}

Result<void> validate(const KernelSpec& spec, std::string_view advice) {
    if (auto legal = check_legal(spec); !legal) return legal;
    const KernelSpec defaults = default_spec();
    for (const Field& row : spec_fields()) {
        if (!counts(row, spec) && row.print(spec) != row.print(defaults))
            return refuse_useless(row, spec, defaults, advice);
    }
    if (auto rules = check_rules(source_of(spec), ""); !rules) return rules;
    return is_relayout(spec) ? check_rules(destination_of(spec), kTo) : Result<void>();
}

Result<void> validate_spec(const KernelSpec& spec) {
    return validate(spec, kResetIt);
}

}  // namespace kvjit::gen
