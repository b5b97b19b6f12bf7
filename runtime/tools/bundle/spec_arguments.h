// The specs and targets that a command line names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "command/options.h"
#include "generator/spec.h"
#include "result.h"

namespace kvjit::tool {

struct SpecArguments {
    std::vector<std::string> specs;                          // each a list of its own
    std::vector<std::string> files;                          // of lists; "-": standard input
    std::int64_t max_combinations = KVJIT_MAX_COMBINATIONS;  // of one list
    std::vector<std::string> targets;                        // each with commas between names

    /// Declares --specs, --targets and --max-combinations.
    void declare(Options& options, bool is_needed);

    /// Each spec once, in order. What lists leave out is said on standard error. Errors: none is named, or a bad one,
    /// with the file or the word that has it.
    Result<std::vector<gen::KernelSpec>> read_specs() const;
    /// Each name once, in order. An empty one is refused: a script's variable may be unset.
    Result<std::vector<std::string>> target_names() const;
};

}  // namespace kvjit::tool
