// The default executor: a pool of pthreadpool's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "generator/error.h"
#include "kvjit/kvjit.h"

namespace kvjit::rt {

/// Stack that a task may take.
inline constexpr std::size_t kTaskStackBytes = std::size_t{1} << 20;

/// The process's pool of `num_threads` threads, the caller included; 0: one for each core that the calling thread may
/// run on. Made at the first request, alive until the process ends; a forked process makes its own. Thread-safe; calls
/// from several threads run one by one. BAD_ARGUMENT where new threads get a stack too small for a task.
gen::Result<kvjit_executor> default_executor(std::uint32_t num_threads);

}  // namespace kvjit::rt
