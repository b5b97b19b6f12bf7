#include "usable_cores.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <vector>

namespace kvjit::rt {

std::uint32_t usable_cores() {
    for (std::vector<cpu_set_t> sets(1);; sets.resize(2 * sets.size())) {
        const std::size_t bytes = sets.size() * sizeof(cpu_set_t);
        if (sched_getaffinity(0, bytes, sets.data()) == 0)
            return static_cast<std::uint32_t>(CPU_COUNT_S(bytes, sets.data()));
        if (errno != EINVAL) return std::max(1u, std::thread::hardware_concurrency());  // EINVAL: more cores than bits
    }
}

}  // namespace kvjit::rt
