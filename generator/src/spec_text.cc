// Parses a spec's text, with names of layouts, and prints it.
#include <vector>

#include "generator/layouts.h"
#include "generator/nearest.h"
#include "spec_parts.h"
#include "words.h"

namespace kvjit::gen {
namespace {

constexpr std::string_view kLeaveItOut = " (leave it out)";  // a field that counts for nothing

std::unexpected<Error> unknown_field(std::string_view name) {
    const std::string meant = did_you_mean(meant_field(name));
    std::string says =
        "unknown field " + quoted(name) + meant + (meant.empty() ? "; the fields are" : " The fields are");
    for (const Field& row : spec_fields()) says.append(row.name == "op" ? " " : ", ").append(row.name);
    return fail(KVJIT_BAD_SPEC, std::string(name), says);
}

/// The fields that a text has given.
struct Given {
    KernelSpec spec = default_spec();
    std::vector<char> seen = std::vector<char>(spec_fields().size());
    const NamedLayout* named = nullptr;     // the name that `layout` was given
    const NamedLayout* to_named = nullptr;  // the name that to_layout was given

    char& saw(const Field& row) { return seen[static_cast<std::size_t>(&row - spec_fields().data())]; }
};

/// Of a layout's family, or of a name that the family doesn't have, the other families and orders are no help.
std::unexpected<Error> refuse_layout(const Field& row, std::string_view value, const NamedLayout& example) {
    const std::string family(example.name.substr(0, example.name.find(':')));
    std::string names;
    for (const NamedLayout& layout : kNamedLayouts) {
        if (layout.name.substr(0, layout.name.find(':')) != family) continue;
        names.append(names.empty() ? "" : ", ").append(layout.name);
    }
    return refuse(row, quoted(value),
                  "of " + family + " it takes " + names + " (kvjit spec list layouts has their axes)", std::nullopt, 0);
}

/// An order of axes that is none because some are missing. "": it isn't, or others are wrong.
std::string missing_axes(std::string_view value) {
    const std::optional<Axes> axes = parse_axes(value);
    if (value.empty() || !axes || axes->order().find_first_not_of("NTL2HDtd") != std::string_view::npos) return "";
    std::string missing;
    for (const char axis : std::string_view("THD")) {
        if (!axes->has(axis)) missing += (missing.empty() ? "" : ", ") + std::string(1, axis);
    }
    return missing;
}

std::unexpected<Error> refuse_text(const Field& row, std::string_view value) {
    if (value.starts_with('{')) {
        return refuse(
            row, quoted(value),
            "braces make several specs, in lists of specs alone (kvjit bundle create, docs/ahead.md); it takes " +
                std::string(row.takes),
            std::nullopt, 0);
    }
    const bool is_layout = row.name == kLayout || row.name == kToLayout;
    const NamedLayout* example = is_layout ? example_of_family(value) : nullptr;
    if (example != nullptr) return refuse_layout(row, value, *example);
    if (const std::string missing = missing_axes(value); row.name.ends_with(kLayout) && !missing.empty()) {
        return refuse(row, quoted(value), "it lacks " + missing + "; it takes " + std::string(row.takes), std::nullopt,
                      0);
    }
    return refuse_value(row, quoted(value), number_of(value));
}

/// Parses one `field=value`. A field given twice is an error.
Result<void> parse_pair(std::string_view pair, Given& given) {
    const std::size_t equals = pair.find('=');
    if (equals == pair.npos) {
        return fail(KVJIT_BAD_SPEC, std::string(pair),
                    quoted(pair) + " is no field=value pair" + did_you_mean(meant_pair(pair)));
    }
    const Field* row = find_field(pair.substr(0, equals));
    if (row == nullptr) return unknown_field(pair.substr(0, equals));
    const std::string_view value = pair.substr(equals + 1);
    if (given.saw(*row)) return refuse(*row, value, "it was given before, give it once", number_of(value), 0);
    given.saw(*row) = 1;
    if (!row->parse(value, given.spec)) {
        auto refused = refuse_text(*row, value);
        refused.error().message += did_you_mean(meant_value(*row, value));
        return refused;
    }
    if (row->name == kLayout) given.named = find_layout(value);
    if (row->name == kToLayout) given.to_named = find_layout(value);
    return {};
}

/// The name that a layout was given, and the prefix of the fields that it sets.
struct Preset {
    const NamedLayout* named;  // null: it was given by its axes
    std::string_view prefix;   // "", or "to_" of to_layout
};

/// Checks a field that the text gives, too, and that the layout's name sets to `wanted`.
Result<void> check_preset(const Field& row, std::string_view wanted, const Preset& preset, const KernelSpec& spec) {
    const std::string value = row.print(spec);
    if (value == wanted) return {};
    const std::string layout = std::string(preset.prefix).append(kLayout);
    return refuse(row, value,
                  layout + "=" + std::string(preset.named->name) + " sets it to " + std::string(wanted) +
                      "; leave it out, or give the order alone, " + layout + "=" + std::string(preset.named->order),
                  number_of(value), number_of(wanted).value_or(0));
}

/// Sets the other fields that the layout's name implies, as far as the operator uses them.
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
    if (own_value_axes(given.spec, &KernelSpec::value_layout, &KernelSpec::layout).empty())
        set_text(given.spec.value_layout, "");
    if (own_value_axes(given.spec, &KernelSpec::to_value_layout, &KernelSpec::to_layout).empty())
        set_text(given.spec.to_value_layout, "");
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
    for (const Field& row : spec_fields()) {
        const std::string value = row.print(spec);
        if (row.name != "op" && value == row.print(defaults)) continue;
        if (!text.empty()) text += ',';
        text.append(row.name).append("=").append(value);
    }
    return text;
}

}  // namespace kvjit::gen
