// `kvjit spec explain`: each field of a spec, its value, and what that means.
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "bundle/files.h"
#include "command/options.h"
#include "generator/spec.h"
#include "json.h"
#include "spec/spec_commands.h"
#include "table.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

struct Request {
    std::vector<std::string> words;
    bool all = false, json = false;
};

/// The names before the `=` of a spec's text.
std::set<std::string, std::less<>> given_fields(std::string_view text) {
    constexpr std::string_view kSeparators = ", \t\r\n";
    std::set<std::string, std::less<>> names;
    while (!text.empty()) {
        const std::string_view word = text.substr(0, text.find_first_of(kSeparators));
        text.remove_prefix(std::min(word.size() + 1, text.size()));
        if (!word.empty()) names.emplace(word.substr(0, word.find('=')));
    }
    return names;
}

/// The type that auto stands for; of other values themselves.
std::string resolved(const gen::Field& field, const gen::KernelSpec& spec) {
    std::string value = field.print(spec);
    if (value != "auto") return value;
    const gen::KernelSpec side = field.name.starts_with("to_") ? gen::destination_of(spec) : gen::source_of(spec);
    return std::string(gen::dtype_name(field.name.ends_with("t2") ? gen::cache_type(side) : gen::scale_type(side)));
}

struct Explained {
    std::string name, value, resolved, from, help, takes;
    bool counts;
};

/// Where a field's value is from.
std::string origin_of(const gen::Field& field, bool is_given, const gen::KernelSpec& spec) {
    if (is_given) return "given";
    return field.print(spec) == field.print(gen::default_spec()) ? "default" : "by the layout's name";
}

std::vector<Explained> explained(const gen::KernelSpec& spec, const std::string& text) {
    const auto given = given_fields(text);
    std::vector<Explained> fields;
    for (const gen::Field& field : gen::spec_fields()) {
        fields.push_back({std::string(field.name), field.print(spec), resolved(field, spec),
                          origin_of(field, given.contains(field.name), spec), std::string(field.help),
                          std::string(field.takes), gen::counts(field, spec)});
    }
    return fields;
}

std::string text_of(const std::vector<Explained>& fields, bool all) {
    std::vector<std::vector<std::string>> rows = {{"field", "value", "from", "meaning"}};
    for (const Explained& field : fields) {
        if (!field.counts && !all) continue;
        const bool is_auto = field.counts && field.resolved != field.value;
        const std::string value = is_auto ? field.value + ": " + field.resolved : field.value;
        rows.push_back({field.name, value, field.counts ? field.from : "doesn't count", field.help});
    }
    return table_text(rows);
}

Json json_of(const std::vector<Explained>& fields) {
    Json all = Json::array();
    for (const Explained& field : fields) {
        all.push_back({{"field", field.name},
                       {"value", field.value},
                       {"resolved", field.resolved},
                       {"from", field.from},
                       {"counts", field.counts},
                       {"meaning", field.help},
                       {"takes", field.takes}});
    }
    return all;
}

Result<int> explain(const Request& request) {
    std::string text;
    for (const std::string& word : request.words) text += word + " ";
    const gen::Result<gen::KernelSpec> spec = gen::parse_spec(text);
    if (!spec) return fail(escaped(error_text(spec.error())));
    const std::vector<Explained> fields = explained(*spec, text);
    if (request.json) {
        print(dump({{"spec", gen::print_spec(*spec)}, {"fields", json_of(fields)}}));
    } else {
        print(gen::print_spec(*spec) + "\n\n" + text_of(fields, request.all));
    }
    return kExitOk;
}

Action declare(Options& options) {
    auto request = std::make_shared<Request>();
    options.text("SPEC", request->words, kSpec, "field=value pairs, separated by commas or white space")->required();
    options.flag("--all", request->all, "Fields that don't count for this spec, too");
    options.json(request->json);
    return [request] { return explain(*request); };
}

}  // namespace

constinit const Command kSpecExplain = {
    .name = "explain",
    .summary = "Show each field of a spec: its value, whether it was given, and what it means",
    .declare = declare,
    .about = "The first line is the canonical text: fields in order, without those that have their default.",
    .examples =
        "kvjit spec explain head_dim=128 group=4\n"
        "kvjit spec explain layout=vllm:LBNHC,page_size=16 --json\n"};

}  // namespace kvjit::tool
