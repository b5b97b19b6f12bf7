// The default executor: a thread pool by pthreadpool.
#pragma once

#include <cstddef>
#include <cstdint>

#include "generator/error.h"
#include "kvjit/kvjit.h"

namespace kvjit::rt {

/// Stack that each thread running tasks must have, by kvjit.h.
inline constexpr std::size_t kTaskStackBytes = std::size_t{1} << 20;
/// The part of it that must be free when a task begins: more than any kernel uses.
inline constexpr std::size_t kKernelStackBytes = std::size_t{640} << 10;

/// The process's pool of `num_threads` threads, the caller included; 0: one for each core that the calling thread may
/// run on. Created at the first request, alive until the process ends; a forked process creates its own. Until the
/// system has started the threads, or if it can't, the calling thread works alone. Thread-safe; concurrent calls run
/// one by one. Errors: KVJIT_BAD_ARGUMENT where new threads' stacks are too small for a task, KVJIT_OUT_OF_MEMORY.
gen::Result<kvjit_executor> default_executor(std::uint32_t num_threads);

/// The executor in a call's options, or the default one.
template <class Options>
gen::Result<kvjit_executor> executor_of(const Options& options) {
    if (options.executor != nullptr) return *options.executor;
    return default_executor(options.num_threads);
}

/// Checks who runs a plan on a default executor: a thread of the process that made the plan, with enough stack.
class PoolUser {
public:
    /// `executor`: from default_executor(), in this process.
    explicit PoolUser(const kvjit_executor& executor);
    /// Whether the calling thread may run tasks on the executor. Errors: KVJIT_BAD_ARGUMENT. Takes a few loads, after a
    /// thread's first call.
    gen::Result<void> check() const;

private:
    bool has_threads_;
    std::uint32_t forks_;
};

}  // namespace kvjit::rt
