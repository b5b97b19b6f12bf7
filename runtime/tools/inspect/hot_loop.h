// The loop that a summary is about.
#pragma once

#include <string>
#include <vector>

#include "inspect/assembly.h"

namespace kvjit::tool {

struct HotLoop {
    std::string function;  // demangled
    AssemblyLoop loop;
};

/// The innermost loop with the most multiply-adds, each counted by their share of the loop's instructions, so that a
/// long loop around an exponential doesn't pass for the products' own; a product of tiles counts as 64. Where there are
/// no multiply-adds, the one with the most loads and stores of vectors. False: there is no innermost loop.
bool find_hot_loop(const std::vector<AssemblyFunction>& functions, HotLoop& found);

/// "kvjit::score_chunk" of "_ZN5kvjit11score_chunkERNS_5PanelE"; other names as they are.
std::string demangled(const std::string& name);

}  // namespace kvjit::tool
