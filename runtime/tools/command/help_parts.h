// The parts of a command's help, which the text and the man page lay out.
#pragma once

#include <string>
#include <vector>

#include "command/command.h"

namespace kvjit::tool {

struct HelpRow {
    std::string term, text;
};

/// A titled part: paragraphs, then rows, then lines that are kept as they are.
struct HelpPart {
    std::string title;
    std::vector<std::string> paragraphs = {};
    std::vector<HelpRow> rows = {};
    std::string lines = "";
};

struct HelpParts {
    std::string usage;  // "kvjit inspect [OPTION...] [SPEC...]"
    std::string summary;
    std::vector<HelpPart> parts;
};

HelpParts help_parts(const Command& root, const Called& called);

}  // namespace kvjit::tool
