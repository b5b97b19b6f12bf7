#include "cpu/executor.h"

#include <pthreadpool.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <latch>
#include <map>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace kvjit::rt {
namespace {

struct DestroyPool {
    void operator()(pthreadpool* pool) const { pthreadpool_destroy(pool); }
};

struct Call {
    void (*task)(void* argument, std::int64_t i);
    void* argument;
};

void run_one(void* context, std::size_t i) {
    const Call& call = *static_cast<const Call*>(context);
    call.task(call.argument, static_cast<std::int64_t>(i));
}

void run_on_pool(void* context, void (*task)(void*, std::int64_t), void* argument, std::int64_t count) {
    Call call{task, argument};
    pthreadpool_parallelize_1d(static_cast<pthreadpool*>(context), run_one, &call, static_cast<std::size_t>(count), 0);
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

/// How many of `wanted` threads can be had at once, the caller included: pthreadpool waits for ever for one that can't.
std::uint32_t available_threads(std::uint32_t wanted) {
    std::latch all_started(1);
    std::vector<std::thread> threads;
    try {
        while (threads.size() + 1 < wanted) threads.emplace_back([&] { all_started.wait(); });
    } catch (const std::system_error&) {
        // As many as there are.
    }
    all_started.count_down();
    for (std::thread& thread : threads) thread.join();
    return static_cast<std::uint32_t>(threads.size()) + 1;
}

struct PoolExecutor {
    explicit PoolExecutor(std::uint32_t num_threads) : pool(pthreadpool_create(available_threads(num_threads))) {
        executor.struct_size = sizeof executor;
        executor.concurrency = static_cast<std::int32_t>(pthreadpool_get_threads_count(pool.get()));
        executor.context = pool.get();
        executor.run = run_on_pool;
    }
    std::unique_ptr<pthreadpool, DestroyPool> pool;
    kvjit_executor executor{};
};

}  // namespace

const kvjit_executor& default_executor(std::uint32_t num_threads) {
    static std::mutex mutex;
    static std::map<std::uint32_t, PoolExecutor> pools;
    const std::uint32_t threads = num_threads != 0 ? num_threads : usable_cores();
    const std::lock_guard lock(mutex);
    return pools.try_emplace(threads, threads).first->second.executor;
}

}  // namespace kvjit::rt
