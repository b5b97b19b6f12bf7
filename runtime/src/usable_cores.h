// How many threads are worth starting.
#pragma once

#include <cstdint>

namespace kvjit::rt {

/// Cores that the calling thread, and threads that inherit its affinity, may run on: in a container often fewer than
/// the machine has, which hardware_concurrency counts. More threads than that slow each other down.
std::uint32_t usable_cores();

}  // namespace kvjit::rt
