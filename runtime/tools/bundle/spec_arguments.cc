#include "bundle/spec_arguments.h"

#include <algorithm>
#include <cstddef>
#include <ranges>
#include <set>
#include <string_view>
#include <utility>

#include "bundle/files.h"
#include "generator/spec_list.h"
#include "input_file.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

constexpr std::size_t kMaxListBytes = std::size_t{64} << 20;

/// Specs, each once.
class Specs {
public:
    explicit Specs(std::int64_t max_combinations) : max_combinations_(max_combinations) {}

    /// `where` is put before errors about the list.
    Result<void> add(const std::string& where, std::string_view text) {
        const gen::Result<gen::SpecList> list = gen::parse_spec_list(text, max_combinations_);
        if (!list) return fail(where + error_text(list.error()));
        for (const gen::SpecList::Item& item : list->specs) {
            if (known_.insert(gen::print_spec(item.spec)).second) all.push_back(item.spec);
        }
        for (const gen::SpecList::LeftOut& out : list->left_out) {
            complain("left out: " + where + "line " + std::to_string(out.line) + ": " + out.combination + ": " +
                     out.reason.message);
        }
        return {};
    }

    std::vector<gen::KernelSpec> all;

private:
    std::int64_t max_combinations_;
    std::set<std::string> known_;
};

}  // namespace

void SpecArguments::declare(Options& options, bool is_needed) {
    options.text("--specs", files, kFile, "File of specs; - is standard input; may be given again");
    CLI::Option* const named = options.text("--targets", targets, {"TARGET,...", Offer::kTargets},
                                            "x86-64-v3, x86-64-v4-amx, sm_80, sm_90a, host, ...; with commas");
    if (is_needed) named->required();
    options.number("--max-combinations", max_combinations, 1, INT64_MAX,
                   "Combinations that a list of specs may make, at most");
}

Result<std::vector<gen::KernelSpec>> SpecArguments::read_specs() const {
    Specs named(max_combinations);
    for (const std::string& path : files) {
        const Result<std::string> text = read_file(path, kMaxListBytes);
        if (!text) return fail(text.error());
        if (auto added = named.add(path + ": ", *text); !added) return fail(added.error());
    }
    for (std::size_t i = 0; i < specs.size(); ++i) {
        const std::string& text = specs[i];
        if (specs.size() > 1 && !text.starts_with("op=")) {
            return fail("SPEC \"" + text +
                        "\" is one of several, each of which is a spec and begins with op=; a spec's "
                        "fields have commas between them");
        }
        const std::string where = specs.size() > 1 ? "SPEC " + std::to_string(i + 1) + ": " : "";
        if (auto added = named.add(where, text); !added) return fail(added.error());
    }
    if (named.all.empty()) return fail("there is no spec to make kernels of: --specs FILE, or SPEC");
    return std::move(named.all);
}

Result<std::vector<std::string>> SpecArguments::target_names() const {
    std::vector<std::string> names;
    for (const std::string& list : targets) {
        std::vector<std::string> parts;
        for (const auto part : std::views::split(list, ',')) parts.emplace_back(part.begin(), part.end());
        if (parts.empty() || std::ranges::find(parts, "") != parts.end()) {
            return fail("--targets is '" + list + "'; it has an empty name");
        }
        for (const std::string& name : parts) {
            if (std::ranges::find(names, name) == names.end()) names.push_back(name);
        }
    }
    return names;
}

}  // namespace kvjit::tool
