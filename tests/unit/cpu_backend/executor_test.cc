// How many threads the default executor takes, where a process may use few cores or have few threads.
#include "cpu/executor.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "cpu/pool.h"
#include "support.h"
#include "support/child_process.h"

using namespace kvjit;
using std::chrono::microseconds;
using test::in_child;
using test::kBroken;
using test::kSanitized;

namespace {

int first_usable_core() {
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof cores, &cores) != 0) return -1;
    for (int core = 0; core < CPU_SETSIZE; ++core) {
        if (CPU_ISSET(core, &cores)) return core;
    }
    return -1;
}

bool use_one_core() {
    const int core = first_usable_core();
    if (core < 0) return false;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0;
}

int threads_on_one_core() {
    return use_one_core() ? rt::default_executor(0)->concurrency : kBroken;
}

/// The cores that count are those that the thread may use when it asks.
int threads_after_a_change() {
    cpu_set_t all;
    if (sched_getaffinity(0, sizeof all, &all) != 0) return kBroken;
    const int most = std::min(CPU_COUNT(&all), 8);
    if (rt::default_executor(8)->concurrency != most) return 1;
    if (!use_one_core()) return kBroken;
    if (rt::default_executor(8)->concurrency != 1) return 2;
    if (sched_setaffinity(0, sizeof all, &all) != 0) return kBroken;
    return rt::default_executor(8)->concurrency == most ? 0 : 3;
}

int threads_on_all_cores() {
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof cores, &cores) != 0) return kBroken;
    return rt::default_executor(0)->concurrency == CPU_COUNT(&cores) ? 0 : 1;
}

constexpr std::int64_t kTasks = 1000;

/// Whether run(task, argument, kTasks) calls each task once.
template <class Run>
bool calls_each_once(const Run& run) {
    std::vector<std::atomic<int>> calls(kTasks);
    const auto count = [](void* argument, std::int64_t i) { ++static_cast<std::atomic<int>*>(argument)[i]; };
    run(count, calls.data(), kTasks);
    return std::ranges::all_of(calls, [](const std::atomic<int>& times) { return times == 1; });
}

bool runs_all(const kvjit_executor& executor) {
    return calls_each_once([&](auto... call) { executor.run(executor.context, call...); });
}

constexpr microseconds kSpins[] = {microseconds(0), microseconds(1), rt::kDefaultSpin, std::chrono::seconds(1)};

bool runs_all(rt::Pool& pool, microseconds spin) {
    return calls_each_once([&](auto... call) { pool.run(call..., spin); });
}

/// Threads of this process.
int living_threads() {
    return static_cast<int>(std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
}

// Stacks of 1 GiB each, where the address space has room for few of them.
int threads_in_little_memory() {
    constexpr rlim_t kStack = rlim_t{1} << 30, kSpace = rlim_t{8} << 30;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0 || pthread_attr_setstacksize(&attributes, kStack) != 0) return kBroken;
    if (pthread_setattr_default_np(&attributes) != 0) return kBroken;
    const rlimit limit{kSpace, kSpace};
    if (setrlimit(RLIMIT_AS, &limit) != 0) return kBroken;
    rt::Pool& pool = rt::Pool::make(64);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return runs_all(pool, rt::kDefaultSpin) ? living_threads() : kBroken;
}

}  // namespace

TEST_CASE("the default executor has a thread for each core that the process may use") {
    CHECK(in_child(threads_on_one_core) == 1);
    CHECK(in_child(threads_on_all_cores) == 0);
    CHECK(in_child(threads_after_a_change) == 0);
}

TEST_CASE("a forked process has pools of its own" * doctest::skip(kSanitized)) {
    REQUIRE(runs_all(*rt::default_executor(2)));
    CHECK(in_child([] { return runs_all(*rt::default_executor(2)) ? 0 : 1; }) == 0);
}

TEST_CASE("a pool's caller works alone until the threads are there, and then with them") {
    const auto calls = [] {
        rt::Pool& pool = rt::Pool::make(3);
        for (int call = 0; call < 200; ++call) {
            if (!runs_all(pool, rt::kDefaultSpin)) return 1;
        }
        while (living_threads() < 3) std::this_thread::yield();
        return runs_all(pool, rt::kDefaultSpin) ? 0 : 2;
    };
    CHECK(in_child(calls) == 0);
}

TEST_CASE("a pool's threads take part") {
    rt::Pool& pool = rt::Pool::make(2);
    std::set<std::thread::id> seen;
    std::mutex mutex;
    auto two_threads = [&] {
        const std::lock_guard lock(mutex);
        seen.insert(std::this_thread::get_id());
        return seen.size() == 2;
    };
    using Met = decltype(two_threads);
    // A task ends when two threads have taken one: without a helper the first one never would.
    const auto meet = [](void* met, std::int64_t) {
        while (!(*static_cast<Met*>(met))()) std::this_thread::yield();
    };
    pool.run(meet, &two_threads, 2, rt::kDefaultSpin);
    CHECK(seen.size() == 2);
}

TEST_CASE("calls of any length of spinning, from several threads, with pauses between them, do each task once") {
    rt::Pool& pool = rt::Pool::make(4);
    std::atomic<int> wrong = 0;
    const auto call = [&] {
        for (int round = 0; round < 300; ++round) {
            if (!runs_all(pool, kSpins[round % std::size(kSpins)])) ++wrong;
            if (round % 50 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    };
    std::vector<std::thread> callers;
    for (int i = 0; i < 3; ++i) callers.emplace_back(call);
    for (std::thread& caller : callers) caller.join();
    CHECK(wrong == 0);
}

TEST_CASE("there are no more threads than cores, however many are asked for" * doctest::skip(kSanitized)) {
    CHECK(in_child([] {
              const kvjit_executor executor = *rt::default_executor(1024);
              for (int call = 0; call < 100; ++call) {
                  if (!runs_all(executor)) return 1;
              }
              std::this_thread::sleep_for(std::chrono::milliseconds(50));
              const int cores = rt::default_executor(0)->concurrency;
              return executor.concurrency == cores && living_threads() <= cores ? 0 : 2;
          }) == 0);
}

TEST_CASE("a pool whose threads would have too small a stack is refused") {
    const auto refusal = [] {
        pthread_attr_t attributes;
        if (pthread_attr_init(&attributes) != 0 || pthread_attr_setstacksize(&attributes, 256 << 10) != 0) return 1;
        if (pthread_setattr_default_np(&attributes) != 0) return 2;
        if (rt::default_executor(0)) return rt::default_executor(0)->concurrency == 1 ? 0 : 5;
        const auto executor = rt::default_executor(3);
        if (executor || executor.error().argument != "num_threads" || executor.error().value != 3) return 3;
        return runs_all(*rt::default_executor(1)) ? 0 : 4;
    };
    CHECK(in_child(refusal) == 0);
}

TEST_CASE("where threads are scarce, the pool has those that there are, and does all its work" *
          doctest::skip(kSanitized)) {
    const int threads = in_child(threads_in_little_memory);
    CHECK(threads >= 1);
    CHECK(threads < 16);
}
