// Engines' layouts, by the names that the library has for them.
#pragma once

#include <string>
#include <vector>

namespace kvjit::test {

struct Named {
    std::string name, order, sets;

    /// The name sets a mode of pages or blocks, whose size it leaves open.
    bool lacks_page_size() const { return sets.find("block") != std::string::npos; }
};

std::vector<Named> all_names();

/// Without vLLM's for ROCm, whose rows lie in pieces: those are stored and loaded, but neither quantised nor attended
/// to.
std::vector<Named> names_of_whole_rows();

}  // namespace kvjit::test
