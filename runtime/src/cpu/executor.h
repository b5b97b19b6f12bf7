// The default executor: the process's own threads.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "generator/error.h"
#include "kvjit/kvjit.h"

namespace kvjit::rt {

/// Stack that each thread running tasks must have, by kvjit.h.
inline constexpr std::size_t kTaskStackBytes = std::size_t{1} << 20;
/// The part of it that must be free when a task begins: more than any kernel uses.
inline constexpr std::size_t kKernelStackBytes = std::size_t{640} << 10;

/// How long the pool's threads spin after a call: a few times what waking them takes. So spinning never costs much
/// more than it saves, whatever comes next, and the stages of one run find their threads awake.
inline constexpr std::chrono::microseconds kDefaultSpin{50};

/// The process's pool of `num_threads` threads, the caller included, or of as many as there are cores that the calling
/// thread may run on, if that is less, or if it is 0. Created at the first request, alive until the process ends; a
/// forked process creates its own. Pools of one size are the same; `spin`: Pool::run's. Thread-safe; concurrent calls
/// run one by one. Errors: KVJIT_BAD_ARGUMENT where new threads' stacks are too small for a task, KVJIT_OUT_OF_MEMORY.
gen::Result<kvjit_executor> default_executor(std::uint32_t num_threads, std::chrono::microseconds spin = kDefaultSpin);

/// The executor in a call's options, or the default one.
template <class Options>
gen::Result<kvjit_executor> executor_of(const Options& options) {
    if (options.executor != nullptr) return *options.executor;
    const std::chrono::microseconds spin(options.spin_us);
    return default_executor(options.num_threads, options.spin_us < 0 ? kDefaultSpin : spin);
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
