// How many threads are worth starting.
#pragma once

#include <cstdint>

namespace kvjit::rt {

/// Cores that the calling thread may run on, whose affinity new threads inherit: in a container often few of the
/// machine's, which is what hardware_concurrency counts. Threads that share a core only get in each other's way.
std::uint32_t usable_cores();

}  // namespace kvjit::rt
