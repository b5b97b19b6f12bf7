// Which lines of the templates a tile's instructions are from, of code that was compiled with line numbers.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "inspect/sass/tile_loop.h"

namespace kvjit::tool::sass {

/// "cuda/attend/work.h:26" by instruction's address, of a listing with lines: the innermost line that is not a
/// primitive's (cuda/machine/), as who calls them is what matters. Empty: the listing has none.
std::map<std::int64_t, std::string> lines_of(std::string_view listing);

/// A line's instructions, and those with each opcode, most first.
struct LineCount {
    std::string line;
    std::int64_t instructions;
    std::vector<std::pair<std::string, std::int64_t>> opcodes;
};

/// The lines with most instructions first. Empty where `lines` is.
std::vector<LineCount> count_lines(std::span<const Counted> code, const std::map<std::int64_t, std::string>& lines);

}  // namespace kvjit::tool::sass
