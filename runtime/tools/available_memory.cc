#include "available_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace kvjit::tool {
namespace {

constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();

/// Parses the line "MemAvailable:   12345 kB".
std::size_t of_the_machine() {
    std::ifstream lines("/proc/meminfo");
    std::string name, unit;
    for (std::size_t kib; lines >> name >> kib; std::getline(lines, unit)) {
        if (name == "MemAvailable:") return kib * 1024;
    }
    return kUnlimited;
}

/// What is left to the control group that this process sees as the root, as in a container.
std::size_t of_the_group() {
    std::size_t most = 0;
    std::ifstream("/sys/fs/cgroup/memory.max") >> most;  // "max": no limit
    return most == 0 ? kUnlimited : most;
}

std::size_t of_the_process() {
    rlimit limit{};
    const bool limited = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    return limited ? static_cast<std::size_t>(limit.rlim_cur) : kUnlimited;
}

}  // namespace

std::size_t available_memory() {
    return std::min({of_the_machine(), of_the_group(), of_the_process()});
}

}  // namespace kvjit::tool
