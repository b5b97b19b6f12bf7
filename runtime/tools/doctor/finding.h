// What `kvjit doctor` finds.
#pragma once

#include <string>
#include <vector>

namespace kvjit::tool {

enum class Health {
    kGood,
    kNote,    // something is absent that this machine may do without
    kProblem  // something is there and doesn't work
};

struct Finding {
    Health health;
    std::string what;  // "disk cache"
    std::string text;
    std::string fix = "";  // a line; "" where nothing need be done
};
using Findings = std::vector<Finding>;

/// Nothing here loads a program or asks for a permission of the process.
Findings examine_cpu();
Findings examine_compiler();
Findings examine_cuda();
Findings examine_cache();
Findings examine_environment();
Findings examine_bundle(const std::string& path);

}  // namespace kvjit::tool
