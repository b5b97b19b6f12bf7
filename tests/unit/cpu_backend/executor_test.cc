// How many threads the default executor takes, where a process may use few cores or have few threads.
#include "cpu/executor.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <thread>

#include "support.h"
#include "support/child_process.h"

using namespace kvjit;
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

int threads_on_one_core() {
    const int core = first_usable_core();
    if (core < 0) return kBroken;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) return kBroken;
    return rt::default_executor(0)->concurrency;
}

int threads_on_all_cores() {
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof cores, &cores) != 0) return kBroken;
    return rt::default_executor(0)->concurrency == CPU_COUNT(&cores) ? 0 : 1;
}

constexpr std::int64_t kTasks = 1000;

bool runs_all(const kvjit_executor& executor) {
    std::atomic<std::int64_t> sum = 0;
    const auto add = [](void* argument, std::int64_t i) { *static_cast<std::atomic<std::int64_t>*>(argument) += i; };
    executor.run(executor.context, add, &sum, kTasks);
    return sum == kTasks * (kTasks - 1) / 2;
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
    const kvjit_executor executor = *rt::default_executor(64);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return runs_all(executor) ? living_threads() : kBroken;
}

}  // namespace

TEST_CASE("the default executor has a thread for each core that the process may use") {
    CHECK(in_child(threads_on_one_core) == 1);
    CHECK(in_child(threads_on_all_cores) == 0);
}

TEST_CASE("a forked process has pools of its own" * doctest::skip(kSanitized)) {
    REQUIRE(runs_all(*rt::default_executor(2)));
    CHECK(in_child([] { return runs_all(*rt::default_executor(2)) ? 0 : 1; }) == 0);
}

TEST_CASE("a pool's caller works alone until the threads are there, and then with them") {
    const auto calls = [] {
        const kvjit_executor executor = *rt::default_executor(3);
        for (int call = 0; call < 200; ++call) {
            if (!runs_all(executor)) return 1;
        }
        while (living_threads() < 3) std::this_thread::yield();
        return runs_all(executor) ? 0 : 2;
    };
    CHECK(in_child(calls) == 0);
}

TEST_CASE("a pool whose threads would have too small a stack is refused") {
    const auto refusal = [] {
        pthread_attr_t attributes;
        if (pthread_attr_init(&attributes) != 0 || pthread_attr_setstacksize(&attributes, 256 << 10) != 0) return 1;
        if (pthread_setattr_default_np(&attributes) != 0) return 2;
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
