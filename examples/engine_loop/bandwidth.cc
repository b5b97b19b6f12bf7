#include "bandwidth.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace demo {
namespace {

constexpr std::size_t kLine = 64 / sizeof(std::uint64_t);

/// A cache line at a time, in sums of its words that don't wait for each other.
std::uint64_t add_up(const std::uint64_t* words, std::size_t count) {
    std::uint64_t sums[kLine] = {};
    for (std::size_t i = 0; i + kLine <= count; i += kLine) {
        for (std::size_t word = 0; word < kLine; ++word) sums[word] += words[i + word];
    }
    std::uint64_t sum = 0;
    for (const std::uint64_t part : sums) sum += part;
    return sum;
}

}  // namespace

ReadLoop::ReadLoop(std::size_t bytes, int threads)
    : words_(bytes / sizeof(std::uint64_t), 1), sums_(static_cast<std::size_t>(threads)) {}

double ReadLoop::measure() {
    const std::size_t part = words_.size() / sums_.size();
    std::atomic<std::size_t> not_started{sums_.size()};
    const auto wait_for_all = [&not_started] {
        --not_started;
        while (not_started != 0) std::this_thread::yield();
    };
    std::vector<std::thread> threads;
    for (std::size_t i = 1; i < sums_.size(); ++i) {
        threads.emplace_back([this, i, part, &wait_for_all] {
            wait_for_all();
            sums_[i] = add_up(words_.data() + i * part, part);
        });
    }
    wait_for_all();
    const auto start = std::chrono::steady_clock::now();
    sums_[0] = add_up(words_.data(), part);
    for (std::thread& thread : threads) thread.join();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
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
