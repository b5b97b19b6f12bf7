#include "command/help.h"

#include <algorithm>
#include <sstream>

#include "command/help_parts.h"
#include "command/words.h"
#include "kvjit/kvjit.h"

namespace kvjit::tool {
namespace {

constexpr std::size_t kColumns = 100;
constexpr std::size_t kWidestTerm = 24;

/// Lines behind two blanks.
std::string indented(const std::string& lines) {
    std::istringstream all(lines);
    std::string text;
    for (std::string line; std::getline(all, line);) text += (line.empty() ? "" : "  " + line) + "\n";
    return text;
}

/// Whether a paragraph's lines are kept as they are.
bool is_kept(const std::string& paragraph) {
    return paragraph.starts_with(' ');
}

std::string rows_text(const std::vector<HelpRow>& rows) {
    std::size_t width = 0;
    for (const HelpRow& row : rows) {
        if (row.term.size() <= kWidestTerm) width = std::max(width, row.term.size());
    }
    const std::string indent(width + 4, ' ');
    std::string text;
    for (const HelpRow& row : rows) {
        const bool fits = row.term.size() <= width;
        text += "  " + row.term + (fits ? std::string(width - row.term.size() + 2, ' ') : "\n" + indent);
        text += wrapped(row.text, kColumns, indent) + "\n";
    }
    return text;
}

std::string part_text(const HelpPart& part) {
    std::string text = "\n" + part.title + ":\n" + rows_text(part.rows);
    if (!part.rows.empty() && !part.paragraphs.empty()) text += "\n";
    for (const std::string& paragraph : part.paragraphs) {
        text += is_kept(paragraph) ? indented(paragraph) : "  " + wrapped(paragraph, kColumns, "  ") + "\n";
    }
    return text + indented(part.lines);
}

// ---- The man page --------------------------------------------------------------------------------------------------

/// As roff takes text: backslashes and hyphens, and no line that looks like a request.
std::string roff(std::string_view text) {
    std::string out;
    bool begins = true;
    for (const char c : text) {
        if (begins && (c == '.' || c == '\'')) out += "\\&";
        if (c == '\\') {
            out += "\\e";
        } else if (c == '-') {
            out += "\\-";
        } else {
            out += c;
        }
        begins = c == '\n';
    }
    return out;
}

std::string man_lines(const std::string& lines) {
    return ".PP\n.nf\n" + roff(indented(lines)) + ".fi\n";
}

std::string man_part(const HelpPart& part) {
    std::string text = ".PP\n\\fI" + part.title + "\\fR\n";
    for (const HelpRow& row : part.rows) text += ".TP\n\\fB" + roff(row.term) + "\\fR\n" + roff(row.text) + "\n";
    for (const std::string& paragraph : part.paragraphs) {
        text += is_kept(paragraph) ? man_lines(paragraph) : ".PP\n" + roff(paragraph) + "\n";
    }
    return part.lines.empty() ? text : text + man_lines(part.lines);
}

void add_man(const Command& root, const Called& called, std::string& page) {
    const HelpParts help = help_parts(root, called);
    page += ".SS \"" + roff(called.words) + "\"\n" + roff(help.summary) + "\n.PP\n\\fB" + roff(help.usage) + "\\fR\n";
    for (const HelpPart& part : help.parts) page += man_part(part);
    for (const Command* command : called.command->commands) {
        add_man(root, {command, called.words + " " + std::string(command->name)}, page);
    }
}

}  // namespace

std::string help_text(const Command& root, const Called& called) {
    const HelpParts help = help_parts(root, called);
    std::string text = "Usage: " + help.usage + "\n\n" + wrapped(help.summary, kColumns, "") + "\n";
    for (const HelpPart& part : help.parts) text += part_text(part);
    return text;
}

std::string man_page(const Command& root) {
    const std::string name(root.name);
    const HelpParts help = help_parts(root, {&root, name});
    std::string page = ".TH KVJIT 1 \"\" \"" + version_text() + "\"\n.SH NAME\n" + name + " \\- " + roff(root.summary) +
                       "\n.SH SYNOPSIS\n\\fB" + roff(help.usage) + "\\fR\n.SH DESCRIPTION\n";
    for (const HelpPart& part : help.parts) page += man_part(part);
    page += ".SH COMMANDS\n";
    for (const Command* command : root.commands)
        add_man(root, {command, name + " " + std::string(command->name)}, page);
    return page;
}

std::string version_text() {
    return std::string("kvjit ") + kvjit_version();
}

}  // namespace kvjit::tool
