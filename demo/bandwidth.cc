#include "bandwidth.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

namespace demo {
namespace {

constexpr std::size_t kLine = 64 / sizeof(std::uint64_t);

/// A cache line at a time, in sums of its words that don't wait for each other.
[[gnu::always_inline]] inline std::uint64_t add_lines(const std::uint64_t* words, std::size_t count) {
    std::uint64_t sums[kLine] = {};
    for (std::size_t i = 0; i + kLine <= count; i += kLine) {
        for (std::size_t word = 0; word < kLine; ++word) sums[word] += words[i + word];
    }
    std::uint64_t sum = 0;
    for (const std::uint64_t part : sums) sum += part;
    return sum;
}

[[gnu::target("avx512f")]] std::uint64_t add_up_512(const std::uint64_t* words, std::size_t count) {
    return add_lines(words, count);
}
[[gnu::target("avx2")]] std::uint64_t add_up_256(const std::uint64_t* words, std::size_t count) {
    return add_lines(words, count);
}
std::uint64_t add_up_128(const std::uint64_t* words, std::size_t count) {
    return add_lines(words, count);
}

/// With the widest vectors that the machine has.
std::uint64_t add_up(const std::uint64_t* words, std::size_t count) {
    if (__builtin_cpu_supports("avx512f")) return add_up_512(words, count);
    if (__builtin_cpu_supports("avx2")) return add_up_256(words, count);
    return add_up_128(words, count);
}

/// The start that threads make together, unless it is called off.
class Start {
public:
    explicit Start(std::size_t threads) : missing_(threads) {}

    /// Waits for all threads; false if there is no start. The last one takes the time.
    bool wait() {
        if (--missing_ == 0) {
            time_ = std::chrono::steady_clock::now();
            state_ = kGiven;
        }
        while (state_ == kAwaited) std::this_thread::yield();
        return state_ == kGiven;
    }
    void call_off() { state_ = kCalledOff; }
    std::chrono::steady_clock::time_point time() const { return time_; }

private:
    enum State { kAwaited, kGiven, kCalledOff };
    std::atomic<std::size_t> missing_;
    std::atomic<State> state_{kAwaited};
    std::chrono::steady_clock::time_point time_;
};

void join_all(std::vector<std::thread>& threads) {
    for (std::thread& thread : threads) thread.join();
}

/// One thread for each number from 1 to `count` - 1; all of them or, with an exception, none.
template <class Task>
std::vector<std::thread> start_threads(std::size_t count, Start& start, const Task& task) {
    std::vector<std::thread> threads;
    threads.reserve(count);
    try {
        for (std::size_t i = 1; i < count; ++i) threads.emplace_back(task, i);
    } catch (const std::exception& failure) {
        start.call_off();
        join_all(threads);
        throw std::runtime_error("only " + std::to_string(threads.size() + 1) + " of " + std::to_string(count) +
                                 " threads that read can be had: " + failure.what());
    }
    return threads;
}

}  // namespace

ReadLoop::ReadLoop(std::size_t bytes, int threads)
    : words_(bytes / sizeof(std::uint64_t), 1), sums_(static_cast<std::size_t>(threads)) {}

double ReadLoop::measure() {
    const std::size_t part = words_.size() / sums_.size();
    Start start(sums_.size());
    const auto read_part = [this, part, &start](std::size_t i) {
        if (start.wait()) sums_[i] = add_up(words_.data() + i * part, part);
    };
    std::vector<std::thread> threads = start_threads(sums_.size(), start, read_part);
    start.wait();
    sums_[0] = add_up(words_.data(), part);
    join_all(threads);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start.time();
    return static_cast<double>(part * sums_.size() * sizeof(std::uint64_t)) / seconds.count();
}

int usable_cores() {
    cpu_set_t cores;
    if (::sched_getaffinity(0, sizeof cores, &cores) == 0) return CPU_COUNT(&cores);
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::size_t last_level_cache_bytes() {
    const long bytes = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
    return bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
}

}  // namespace demo
