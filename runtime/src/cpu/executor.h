// The default executor: a pool of pthreadpool's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "generator/error.h"
#include "kvjit/kvjit.h"

namespace kvjit::rt {

/// Stack that a thread which runs tasks must have, by kvjit.h.
inline constexpr std::size_t kTaskStackBytes = std::size_t{1} << 20;
/// What of it must be left when a task begins: more than any kernel takes.
inline constexpr std::size_t kKernelStackBytes = std::size_t{640} << 10;

/// The process's pool of `num_threads` threads, the caller included; 0: one for each core that the calling thread may
/// run on. Made at the first request, alive until the process ends; a forked process makes its own. Its threads come
/// when the system has them: until then, and where it has none, whoever calls works alone. Thread-safe; calls from
/// several threads run one by one. Errors: KVJIT_BAD_ARGUMENT where new threads get a stack too small for a task,
/// KVJIT_OUT_OF_MEMORY.
gen::Result<kvjit_executor> default_executor(std::uint32_t num_threads);

/// The executor of a call's options, the default one where they name none.
template <class Options>
gen::Result<kvjit_executor> executor_of(const Options& options) {
    if (options.executor != nullptr) return *options.executor;
    return default_executor(options.num_threads);
}

/// Who runs a plan on a default executor: a thread of the process that made the plan, with a stack to work on.
class PoolUser {
public:
    /// For the executor, which default_executor() gave, in this process.
    explicit PoolUser(const kvjit_executor& executor);
    /// Whether the calling thread may run tasks on it. Errors: KVJIT_BAD_ARGUMENT. A few loads, after a thread's first
    /// call.
    gen::Result<void> check() const;

private:
    bool has_threads_;
    std::uint32_t forks_;
};

}  // namespace kvjit::rt
