#include "inspect/listing.h"

#include "inspect/assembly_line.h"

namespace kvjit::tool {
namespace {

bool is_code_section(std::string_view directive) {
    return directive.contains(".text");
}

/// Whether a comment tells people something.
bool is_worth_reading(std::string_view comment) {
    return comment.contains("Loop") || comment.ends_with("Spill") || comment.ends_with("Reload");
}

}  // namespace

SourceLines source_lines(std::string_view source) {
    SourceLines lines;
    std::string file;
    int number = 0;
    for_each_line(source, [&](std::string_view line) {
        if (line.starts_with("#line ")) {
            number = number_after(line, "#line ", 1);
            const std::size_t open = line.find('"');
            if (open != line.npos) file = line.substr(open + 1, line.rfind('"') - open - 1);
            if (file.starts_with("templates/")) file.erase(0, std::string_view("templates/").size());
            return;
        }
        lines.emplace(file + ":" + std::to_string(number++), trimmed(line));
    });
    return lines;
}

std::string readable_assembly(std::string_view text, const SourceLines* lines) {
    std::string shown, place;
    bool is_code = true;
    for_each_line(text, [&](std::string_view raw) {
        const AssemblyLine line = parse_line(raw);
        if (line.is_directive()) {
            if (line.text.starts_with(".section")) is_code = is_code_section(line.text);
            if (line.text == ".text") is_code = true;
            const std::string now = line.text.starts_with(".loc") ? place_of(line.comment) : "";
            if (lines == nullptr || now.empty() || now == place) return;
            place = now;
            const auto found = lines->find(place);
            shown += "# " + place + (found == lines->end() ? "" : ": " + found->second) + "\n";
            return;
        }
        if (!is_code || (line.is_label() && line.text.starts_with(".L") && !line.text.starts_with(".LBB"))) return;
        const bool keeps = is_worth_reading(line.comment);
        if (line.text.empty() && !keeps) return;
        if (line.is_label() && !line.text.starts_with(".L")) shown += "\n";
        shown += (line.is_indented && !line.text.empty() ? "\t" : "") + std::string(line.text);
        if (keeps) shown += std::string(line.text.empty() ? "" : "\t") + "# " + std::string(line.comment);
        shown += "\n";
    });
    return shown;
}

}  // namespace kvjit::tool
