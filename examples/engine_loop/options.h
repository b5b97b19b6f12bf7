#pragma once

#include <cstdint>
#include <string>

namespace demo {

struct Options {
    int steps = 48;
    int layers = 4;
    int threads = 0;  // 0: one a core
    std::string target = "host";
    std::uint64_t seed = 1;
    bool help = false;
};

/// What --help prints.
extern const char kHelp[];

/// Throws std::runtime_error with a sentence for a wrong argument.
Options parse_options(int argc, char** argv);

}  // namespace demo
