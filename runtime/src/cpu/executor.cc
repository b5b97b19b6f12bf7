#include "cpu/executor.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <tuple>
#include <utility>

#include "cpu/pool.h"
#include "no_fork.h"
#include "usable_cores.h"

namespace kvjit::rt {
namespace {

/// A pool, and how long its threads spin after a call by this executor.
struct Spinning {
    Pool& pool;
    std::chrono::microseconds spin;
};

void run_on_pool(void* context, void (*task)(void*, std::int64_t), void* argument, std::int64_t count) {
    const Spinning& on = *static_cast<const Spinning*>(context);
    on.pool.run(task, argument, count, on.spin);
}

kvjit_executor executor_on(Pool& pool, std::chrono::microseconds spin) {
    kvjit_executor executor{};
    executor.struct_size = sizeof executor;
    executor.concurrency = static_cast<std::int32_t>(pool.threads());
    executor.context = new Spinning{pool, spin};
    executor.run = run_on_pool;
    return executor;
}

/// Forks between this process and the one that loaded the library.
std::atomic<std::uint32_t> forks{0};

/// The process's pools, and executors on them. A forked process inherits the parent's without their threads, and makes
/// its own.
struct Pools {
    std::mutex mutex;
    std::map<std::pair<std::uint32_t, std::uint32_t>, Pool*> pools;                              // by process, threads
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::int64_t>, kvjit_executor> executors;  // and spin

    /// The caller holds the mutex.
    Pool& pool_of(std::uint32_t process, std::uint32_t threads) {
        Pool*& pool = pools[{process, threads}];
        if (pool == nullptr) pool = &Pool::make(threads);
        return *pool;
    }
};

void count_fork() {
    forks.fetch_add(1, std::memory_order_relaxed);
}

bool watch_forks() {
    if (pthread_atfork(nullptr, nullptr, count_fork) != 0) throw std::bad_alloc();
    return true;
}

/// The bounds of a thread's stack. Both null: not known.
struct Stack {
    const char* lowest = nullptr;
    const char* highest = nullptr;
};

/// The first thread's stack grows up to a limit. How much of it is in use above `here` would take reading /proc; it is
/// taken as none, so that only a limit that is too small by itself is found.
Stack first_threads_stack(const char* here) {
    rlimit limit{};
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= kTaskStackBytes) return {};
    return {here - limit.rlim_cur, reinterpret_cast<const char*>(UINTPTR_MAX)};
}

Stack find_stack(const char* here) {
    if (gettid() == getpid()) return first_threads_stack(here);
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return {};
    void* lowest = nullptr;
    std::size_t bytes = 0;
    pthread_attr_getstack(&attributes, &lowest, &bytes);
    pthread_attr_destroy(&attributes);
    return {static_cast<const char*>(lowest), static_cast<const char*>(lowest) + bytes};
}

/// Bytes left to the calling thread. On a foreign stack, a fiber's say, that can't be known: returns plenty.
std::size_t stack_left() {
    const char* here = static_cast<const char*>(__builtin_frame_address(0));
    thread_local const Stack stack = find_stack(here);
    const bool known = here > stack.lowest && here <= stack.highest;
    return known ? static_cast<std::size_t>(here - stack.lowest) : kTaskStackBytes;
}

/// The pool's threads have the stack that the process gives threads (ulimit -s). `asked`: num_threads as it was given.
gen::Result<void> check_stack(std::uint32_t threads, std::uint32_t asked) {
    std::size_t bytes = kTaskStackBytes;
    pthread_attr_t attributes;
    if (pthread_getattr_default_np(&attributes) == 0) {
        pthread_attr_getstacksize(&attributes, &bytes);
        pthread_attr_destroy(&attributes);
    }
    if (bytes >= kTaskStackBytes || threads == 1) return {};
    return gen::fail(KVJIT_BAD_ARGUMENT, "num_threads",
                     "num_threads is " + std::to_string(asked) + (asked == 0 ? ", one for each core" : "") +
                         ", but this process gives threads stacks of " + std::to_string(bytes) +
                         " bytes (ulimit -s); kvjit_executor's rule (kvjit.h): a task needs " +
                         std::to_string(kTaskStackBytes) + " bytes of stack. Pass an executor, or num_threads 1",
                     asked, 1);
}

}  // namespace

gen::Result<kvjit_executor> default_executor(std::uint32_t num_threads, std::chrono::microseconds spin) {
    [[maybe_unused]] static const bool watched = watch_forks();
    const std::uint32_t cores = usable_cores(), threads = std::min(num_threads != 0 ? num_threads : cores, cores);
    if (auto checked = check_stack(threads, num_threads); !checked) return std::unexpected(checked.error());
    static auto& pools = *new Pools;  // never destroyed: at the process's end threads may still run
    const NoFork stays;
    const std::lock_guard lock(pools.mutex);
    const std::uint32_t process = forks.load();
    kvjit_executor& executor = pools.executors[{process, threads, spin.count()}];
    if (executor.run == nullptr) executor = executor_on(pools.pool_of(process, threads), spin);
    return executor;
}

PoolUser::PoolUser(const kvjit_executor& executor)
    : has_threads_(executor.concurrency > 1), forks_(forks.load(std::memory_order_relaxed)) {}

gen::Result<void> PoolUser::check() const {
    if (has_threads_ && forks.load(std::memory_order_relaxed) != forks_) {
        return gen::fail(KVJIT_BAD_ARGUMENT, "plan",
                         "plan was made before this process was forked; kvjit_run's rule (kvjit.h): the default "
                         "executor's threads stay behind in a fork. Make a new plan in the forked process");
    }
    const std::size_t left = stack_left();
    if (left >= kKernelStackBytes) return {};
    return gen::fail(KVJIT_BAD_ARGUMENT, "plan",
                     "the calling thread has " + std::to_string(left) +
                         " bytes of stack left, and kernels take up to " + std::to_string(kKernelStackBytes) +
                         "; kvjit_run's rule (kvjit.h): it needs " + std::to_string(kTaskStackBytes) +
                         " bytes of stack. Call from a thread that has them, or pass an executor that works on others",
                     static_cast<std::int64_t>(left), static_cast<std::int64_t>(kKernelStackBytes));
}

}  // namespace kvjit::rt
