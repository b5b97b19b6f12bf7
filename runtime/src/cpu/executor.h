// The default executor: a pool of pthreadpool's.
#pragma once

#include <cstdint>

#include "kvjit/kvjit.h"

namespace kvjit::rt {

/// The process's pool of `num_threads` threads, the caller included; 0: one for each core that the process may use.
/// Made at the first request, alive until the process ends. Thread-safe; calls from several threads run one by one.
const kvjit_executor& default_executor(std::uint32_t num_threads);

}  // namespace kvjit::rt
