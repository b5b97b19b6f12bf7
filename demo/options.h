#pragma once

#include <cstdint>
#include <string>

namespace demo {

/// Where a target's kernels run.
enum class Place { kCpu, kGpu, kEmulated };

struct Options {
    int steps = 0;
    int layers = 0;
    int threads = 0;  // of kvjit's pool; CPU targets only
    std::string target = "host";
    Place place = Place::kCpu;  // the target's
    int gpu = 0;                // its ordinal
    std::uint64_t seed = 1;
    std::string bundle;  // a file to take the kernels from; "": they are compiled
    bool help = false;
};

/// What --help prints.
extern const char kHelp[];
/// What to run after the demo: three commands, and what they show.
extern const char kNext[];

/// What isn't given has the target's default. Throws std::runtime_error with a sentence for a wrong argument.
Options parse_options(int argc, char** argv);

}  // namespace demo
