#include "cpu/executor.h"

#include <pthread.h>
#include <pthreadpool.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <latch>
#include <map>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace kvjit::rt {
namespace {

// ThreadSanitizer doesn't see what orders pthreadpool's threads: the library isn't built with it.
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

struct Call {
    void (*task)(void* argument, std::int64_t i);
    void* argument;
};

void run_one(void* context, std::size_t i) {
    observe(context);
    const Call& call = *static_cast<const Call*>(context);
    call.task(call.argument, static_cast<std::int64_t>(i));
    publish(context);
}

void run_on_pool(void* context, void (*task)(void*, std::int64_t), void* argument, std::int64_t count) {
    Call call{task, argument};
    publish(&call);
    pthreadpool_parallelize_1d(static_cast<pthreadpool*>(context), run_one, &call, static_cast<std::size_t>(count), 0);
    observe(&call);
}

/// Cores that the calling thread may run on, whose affinity the pool's threads inherit: in a container often few of the
/// machine's, which is what hardware_concurrency counts. Threads that share a core spin against each other.
std::uint32_t usable_cores() {
    for (std::vector<cpu_set_t> sets(1);; sets.resize(2 * sets.size())) {
        const std::size_t bytes = sets.size() * sizeof(cpu_set_t);
        if (sched_getaffinity(0, bytes, sets.data()) == 0)
            return static_cast<std::uint32_t>(CPU_COUNT_S(bytes, sets.data()));
        if (errno != EINVAL) return std::max(1u, std::thread::hardware_concurrency());  // EINVAL: more cores than bits
    }
}

/// Starts a thread that ends with `latch`; false if there are no more.
bool start_thread(std::vector<std::thread>& threads, const std::latch& latch) {
    try {
        threads.emplace_back([&latch] { latch.wait(); });
        return true;
    } catch (const std::system_error&) {
        return false;
    }
}

/// How many of `wanted` threads can be had at once, the caller included: pthreadpool waits for ever for one that can't.
std::uint32_t available_threads(std::uint32_t wanted) {
    std::latch all_started(1);
    std::vector<std::thread> threads;
    while (threads.size() + 1 < wanted && start_thread(threads, all_started)) continue;
    all_started.count_down();
    for (std::thread& thread : threads) thread.join();
    return static_cast<std::uint32_t>(threads.size()) + 1;
}

kvjit_executor make_pool(std::uint32_t num_threads) {
    pthreadpool* pool = pthreadpool_create(available_threads(num_threads));
    kvjit_executor executor{};
    executor.struct_size = sizeof executor;
    executor.concurrency = static_cast<std::int32_t>(pthreadpool_get_threads_count(pool));
    executor.context = pool;
    executor.run = run_on_pool;
    return executor;
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
                         std::to_string(bytes) + " bytes (ulimit -s), and kernels take up to " +
                         std::to_string(kTaskStackBytes) + ": pass an executor, or num_threads 1",
                     num_threads, 1);
}

}  // namespace

gen::Result<kvjit_executor> default_executor(std::uint32_t num_threads) {
    // Never destroyed: at the process's end, threads may still run kernels on them, for which a destructor would wait.
    static auto& mutex = *new std::mutex;
    static auto& pools = *new std::map<std::pair<pid_t, std::uint32_t>, kvjit_executor>;
    const std::uint32_t threads = num_threads != 0 ? num_threads : usable_cores();
    if (auto checked = check_stack(threads); !checked) return std::unexpected(checked.error());
    const std::pair key{::getpid(), threads};  // a forked process has the parent's pools, but none of their threads
    const std::lock_guard lock(mutex);
    const auto found = pools.find(key);
    return found != pools.end() ? found->second : pools.emplace(key, make_pool(threads)).first->second;
}

}  // namespace kvjit::rt
