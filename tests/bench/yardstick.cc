#include "yardstick.h"

#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "bandwidth.h"
#include "register_loop.h"
#include "setup.h"

namespace kvjit::bench {
namespace {

constexpr long kRounds = 4'000'000;

double (*widest_loop())(long) {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f")) return register_loop_512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return register_loop_256;
    return register_loop_128;
}

/// The pool's threads spin for some 30 ms after a call (docs/threads.md). Measured meanwhile, the machine would look
/// slow and every kernel good.
void wait_for_idle_pool() {
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
}

double measure_read() {
    wait_for_idle_pool();
    // Half is enough: what runs in between sweeps the caches, too.
    static demo::ReadLoop loop(static_cast<std::size_t>(bytes_beyond_cache() / 2), thread_count());
    return loop.measure();
}

double measure_copy() {
    wait_for_idle_pool();
    static std::vector<char> from(static_cast<std::size_t>(bytes_beyond_cache() / 2), 1), to(from.size(), 2);
    const auto threads = static_cast<std::size_t>(thread_count());
    const std::size_t part = from.size() / threads;
    const auto start = std::chrono::steady_clock::now();
    {
        std::vector<std::jthread> copying;
        for (std::size_t i = 0; i < threads; ++i) {
            copying.emplace_back([=] { std::memcpy(to.data() + i * part, from.data() + i * part, part); });
        }
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    return static_cast<double>(part * threads) / seconds.count();
}

double measure_arithmetic() {
    wait_for_idle_pool();
    double (*const loop)(long) = widest_loop();
    std::vector<double> operations(static_cast<std::size_t>(thread_count()));
    const auto start = std::chrono::steady_clock::now();
    {
        std::vector<std::jthread> threads;
        for (double& done : operations) threads.emplace_back([&done, loop] { done = loop(kRounds); });
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    double sum = 0;
    for (const double done : operations) sum += done;
    return sum / seconds.count();
}

}  // namespace

const Yardstick kRead = {"read", "GB/s", measure_read};
const Yardstick kCopy = {"memcpy", "GB/s", measure_copy};
const Yardstick kArithmetic = {"peak", "GFLOP/s", measure_arithmetic};

void run_beside(benchmark::State& state, const Yardstick& yardstick, double work,
                const std::function<Result<void>()>& run) {
    std::vector<double> rates, limits, ratios;
    for (auto _ : state) {
        const auto start = std::chrono::steady_clock::now();
        const Result<void> done = run();
        const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
        if (failed(state, done)) return;
        state.SetIterationTime(taken.count());
        rates.push_back(work / taken.count());
        limits.push_back(yardstick.measure());
        ratios.push_back(rates.back() / limits.back());
    }
    const std::string unit = yardstick.unit, of_name = std::string("of_") + yardstick.name;
    state.counters[unit] = median(rates) / 1e9;
    state.counters[std::string(yardstick.name) + "_" + unit] = median(limits) / 1e9;
    state.counters[of_name] = median(ratios);
    state.counters[of_name + "_p10"] = quantile(ratios, 0.1);
}

}  // namespace kvjit::bench
