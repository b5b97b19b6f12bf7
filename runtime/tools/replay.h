// `kvjit replay`: recorded calls in, one table of verdicts out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "handles.h"
#include "kvjit/kvjit.h"

namespace kvjit::tool {

struct ReplayOptions {
    std::vector<std::string> files;
    std::string target = "host";
    KernelSources sources;
    std::uint32_t num_threads = 0;      // 0: one a core
    std::vector<kvjit_op> ops;          // in this order
    bool oracle = false;                // recordings are held to an oracle, too
    std::optional<std::string> output;  // with the oracle: where to write the only file with its results
    bool bits = false;                  // recordings' results to the last bit, where tolerances would do
    bool quiet = false;                 // rows that pass are not printed
};

/// Exit status: 0 all passed, 1 some result was wrong, 2 a file or the target could not be used.
int replay(const ReplayOptions& options);

}  // namespace kvjit::tool
