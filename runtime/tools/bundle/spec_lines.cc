#include "bundle/spec_lines.h"

#include <ranges>
#include <set>
#include <string>

namespace kvjit::tool {

gen::Result<std::vector<gen::KernelSpec>> expand_specs(std::string_view text) {
    std::vector<gen::KernelSpec> specs;
    std::set<std::string> known;
    std::size_t number = 0;
    for (const auto part : std::views::split(text, '\n')) {
        ++number;
        std::string_view line(part.begin(), part.end());
        line = line.substr(0, line.find('#'));
        if (line.find_first_not_of(" \t\r") == line.npos) continue;
        gen::Result<gen::KernelSpec> spec = gen::parse_spec(line);
        if (!spec) {
            spec.error().message = "line " + std::to_string(number) + ": " + spec.error().message;
            return std::unexpected(spec.error());
        }
        if (known.insert(gen::print_spec(*spec)).second) specs.push_back(*spec);
    }
    return specs;
}

}  // namespace kvjit::tool
