// Clang's assembly of x86-64 as numbers, and in a form that people read.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kvjit::tool {

/// What instructions do, counted where they stand.
struct InstructionCounts {
    int instructions = 0;
    int fmas = 0;           // fused multiply-adds, those of bfloat16 pairs, bytes and tiles among them
    int tile_products = 0;  // those of AMX's tiles, which are fmas, too
    int multiplies = 0;     // of floating-point numbers, not fused: targets without FMA
    int loads = 0;          // from memory, as an operand or alone
    int stores = 0;
    int spills = 0;  // registers saved to the frame
    int reloads = 0;
    int vector_bytes = 0;  // the widest register; 0: no vectors

    InstructionCounts& operator+=(const InstructionCounts& other);
};

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

struct HotLoop {
    std::string function;  // demangled
    AssemblyLoop loop;
};

/// Reads text that Clang has written with its comments, which name loops and spills.
std::vector<AssemblyFunction> read_assembly(std::string_view text);

/// The innermost loop with the most multiply-adds, each counted by their share of the loop's instructions, so that a
/// long loop around an exponential doesn't pass for the products' own; a product of tiles counts as 64. Where there are
/// no multiply-adds, the one with the most loads and stores of vectors. False: there is no innermost loop.
bool find_hot_loop(const std::vector<AssemblyFunction>& functions, HotLoop& found);

/// "kvjit::score_chunk" of "_ZN5kvjit11score_chunkERNS_5PanelE"; other names as they are.
std::string demangled(const std::string& name);

/// Lines of a rendered source by the place that its #line directives give them: "cpu/store.cc:40".
using SourceLines = std::map<std::string, std::string, std::less<>>;
SourceLines source_lines(std::string_view source);

/// Labels, instructions and comments on loops and spills, without directives and data. With `lines`, each change of
/// line has the line's place and text in front.
std::string readable_assembly(std::string_view text, const SourceLines* lines);

}  // namespace kvjit::tool
