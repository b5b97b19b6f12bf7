#include "cpu/executor.h"

#include <pthread.h>
#include <pthreadpool.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <latch>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "usable_cores.h"

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace kvjit::rt {
namespace {

// ThreadSanitizer doesn't see the synchronisation of pthreadpool, which isn't built with it.
#if defined(__SANITIZE_THREAD__)
void publish(void* place) {
    __tsan_release(place);
}
void observe(void* place) {
    __tsan_acquire(place);
}
#else
void publish(void*) {}
void observe(void*) {}
#endif

/// A pool whose threads are started in the background of the first request: on a busy machine they take milliseconds to
/// get a core. Null until they have started.
using Pool = std::atomic<pthreadpool*>;

struct Call {
    void (*task)(void* argument, std::int64_t i);
    void* argument;
    std::int64_t first;
};

void run_one(void* context, std::size_t i) {
    observe(context);
    const Call& call = *static_cast<const Call*>(context);
    call.task(call.argument, call.first + static_cast<std::int64_t>(i));
    publish(context);
}

/// The caller works alone until the threads have started.
void run_on_pool(void* context, void (*task)(void*, std::int64_t), void* argument, std::int64_t count) {
    const Pool& pool = *static_cast<const Pool*>(context);
    Call call{task, argument, 0};
    pthreadpool* threads = nullptr;
    while (call.first < count && (threads = pool.load(std::memory_order_acquire)) == nullptr) {
        task(argument, call.first++);
    }
    if (call.first == count) return;
    publish(&call);
    pthreadpool_parallelize_1d(threads, run_one, &call, static_cast<std::size_t>(count - call.first), 0);
    observe(&call);
}

/// Starts a thread that ends with `latch`; false if the system has no more threads, or no memory for one.
bool start_thread(std::vector<std::thread>& threads, const std::latch& latch) {
    try {
        threads.emplace_back([&latch] { latch.wait(); });
        return true;
    } catch (const std::exception&) {
        return false;
    }
}

/// How many of `wanted` threads can exist at once, the caller included: pthreadpool waits for ever for one that can't.
std::uint32_t available_threads(std::uint32_t wanted) {
    std::latch all_started(1);
    std::vector<std::thread> threads;
    while (threads.size() + 1 < wanted && start_thread(threads, all_started)) continue;
    all_started.count_down();
    for (std::thread& thread : threads) thread.join();
    return static_cast<std::uint32_t>(threads.size()) + 1;
}

/// If no thread can be created, the pool remains without any, and callers do all the work.
void start_threads(Pool& pool, std::uint32_t num_threads) {
    const auto start = [&pool, num_threads] {
        try {
            pool.store(pthreadpool_create(available_threads(num_threads)), std::memory_order_release);
        } catch (const std::bad_alloc&) {
        }
    };
    try {
        std::thread(start).detach();
    } catch (const std::system_error&) {
    }
}

/// The pool is never destroyed: at the process's end, threads may still run kernels on it, and a destructor would wait
/// for them.
kvjit_executor make_pool(std::uint32_t num_threads) {
    Pool& pool = *new Pool(nullptr);
    if (num_threads > 1) start_threads(pool, num_threads);
    kvjit_executor executor{};
    executor.struct_size = sizeof executor;
    executor.concurrency = static_cast<std::int32_t>(num_threads);
    executor.context = &pool;
    executor.run = run_on_pool;
    return executor;
}

/// Forks between this process and the one that loaded the library.
std::atomic<std::uint32_t> forks{0};

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

/// The pool's threads have the stack that the process gives threads (ulimit -s).
gen::Result<void> check_stack(std::uint32_t num_threads) {
    std::size_t bytes = kTaskStackBytes;
    pthread_attr_t attributes;
    if (pthread_getattr_default_np(&attributes) == 0) {
        pthread_attr_getstacksize(&attributes, &bytes);
        pthread_attr_destroy(&attributes);
    }
    if (bytes >= kTaskStackBytes || num_threads == 1) return {};
    return gen::fail(KVJIT_BAD_ARGUMENT, "num_threads",
                     "num_threads is " + std::to_string(num_threads) + ", but this process gives threads stacks of " +
                         std::to_string(bytes) + " bytes (ulimit -s); kvjit_executor's rule (kvjit.h): a task needs " +
                         std::to_string(kTaskStackBytes) + " bytes of stack. Pass an executor, or num_threads 1",
                     num_threads, 1);
}

}  // namespace

gen::Result<kvjit_executor> default_executor(std::uint32_t num_threads) {
    // Never destroyed, as the pools aren't.
    static auto& mutex = *new std::mutex;
    static auto& pools = *new std::map<std::pair<std::uint32_t, std::uint32_t>, kvjit_executor>;
    [[maybe_unused]] static const bool watched = watch_forks();
    const std::uint32_t threads = num_threads != 0 ? num_threads : usable_cores();
    if (auto checked = check_stack(threads); !checked) return std::unexpected(checked.error());
    const std::pair key{forks.load(), threads};  // a forked process inherits the parent's pools without their threads
    const std::lock_guard lock(mutex);
    kvjit_executor& pool = pools[key];
    if (pool.run == nullptr) pool = make_pool(threads);
    return pool;
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
