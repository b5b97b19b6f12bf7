// Clang's assembly of x86-64 as numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "inspect/instructions.h"

namespace kvjit::tool {

struct AssemblyLoop {
    std::string label;  // of its header: "BB4_10"
    int depth = 1;
    bool is_innermost = false;
    std::string line;  // of its first multiply-add, else of its first instruction: "cpu/attend/decode_panel.h:40"
    InstructionCounts counts = {};  // of the blocks that no loop inside of it has
};

struct AssemblyFunction {
    std::string name;               // as a linker sees it
    std::int64_t frame_bytes = -1;  // -1: the text doesn't say
    InstructionCounts counts = {};
    std::vector<AssemblyLoop> loops = {};
};

/// Reads text that Clang has written with its comments, which name loops and spills.
std::vector<AssemblyFunction> read_assembly(std::string_view text);

}  // namespace kvjit::tool
