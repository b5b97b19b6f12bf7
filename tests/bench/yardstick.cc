#include "yardstick.h"

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "arithmetic.h"
#include "bandwidth.h"
#include "setup.h"
#include "together.h"

namespace kvjit::bench {
namespace {

double measure_read() {
    demo::wait_for_idle_pool();
    // Half is enough: what runs in between sweeps the caches, too.
    static demo::ReadLoop loop(static_cast<std::size_t>(bytes_beyond_cache() / 2), thread_count());
    return loop.measure();
}

double measure_copy() {
    demo::wait_for_idle_pool();
    static std::vector<char> from(static_cast<std::size_t>(bytes_beyond_cache() / 2), 1), to(from.size(), 2);
    const int threads = thread_count();
    const std::size_t part = from.size() / static_cast<std::size_t>(threads);
    const double seconds =
        demo::run_together(threads, [&](int i) { std::memcpy(to.data() + i * part, from.data() + i * part, part); });
    return static_cast<double>(part * static_cast<std::size_t>(threads)) / seconds;
}

double measure_arithmetic() {
    demo::wait_for_idle_pool();
    return demo::measure_arithmetic(thread_count());
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
