#include "yardstick.h"

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "limits/arithmetic.h"
#include "limits/bandwidth.h"
#include "limits/together.h"
#include "setup.h"

namespace kvjit::bench {
namespace {

template <limits::ReadWay way>
double measure_read() {
    // Half is enough: what runs in between sweeps the caches, too.
    static limits::ReadLoop loop(static_cast<std::size_t>(bytes_beyond_cache() / 2), thread_count());
    return loop.measure(way);
}

double measure_copy() {
    static std::vector<char> from(static_cast<std::size_t>(bytes_beyond_cache() / 2), 1), to(from.size(), 2);
    const int threads = thread_count();
    const std::size_t part = from.size() / static_cast<std::size_t>(threads);
    const double seconds =
        limits::run_together(threads, [&](int i) { std::memcpy(to.data() + i * part, from.data() + i * part, part); });
    return static_cast<double>(part * static_cast<std::size_t>(threads)) / seconds;
}

double measure_arithmetic() {
    return limits::measure_arithmetic(thread_count());
}

double measure_tiles() {
    return limits::measure_bfloat16_tiles(thread_count());
}

}  // namespace

const Yardstick kRead = {"read", "GB/s", measure_read<limits::ReadWay::kPlain>};
const Yardstick kReadPrefetched = {"prefetched", "GB/s", measure_read<limits::ReadWay::kPrefetched>};
const Yardstick kReadStreams = {"streams", "GB/s", measure_read<limits::ReadWay::kStreams>};
const Yardstick kCopy = {"memcpy", "GB/s", measure_copy};
const Yardstick kArithmetic = {"peak", "GFLOP/s", measure_arithmetic};
const Yardstick kTiles = {"tiles", "GFLOP/s", measure_tiles};

std::vector<Yardstick> arithmetic_yardsticks() {
    static const bool has_tiles = measure_tiles() > 0;
    return has_tiles ? std::vector{kArithmetic, kTiles} : std::vector{kArithmetic};
}

namespace {

struct Comparison {
    Yardstick yardstick;
    std::vector<double> limits, ratios;

    void add(double rate) {
        limits.push_back(yardstick.measure());
        ratios.push_back(rate / limits.back());
    }
    void report(benchmark::State& state) const {
        const std::string name = yardstick.name;
        state.counters[name + "_" + yardstick.unit] = median(limits) / 1e9;
        state.counters["of_" + name] = median(ratios);
        state.counters["of_" + name + "_p10"] = quantile(ratios, 0.1);
    }
};

}  // namespace

void run_beside(benchmark::State& state, const std::vector<Yardstick>& yardsticks, double work,
                const std::function<Result<void>()>& run) {
    std::vector<double> rates;
    std::vector<Comparison> comparisons;
    for (const Yardstick& yardstick : yardsticks) comparisons.push_back({yardstick, {}, {}});
    for (auto _ : state) {
        const auto start = std::chrono::steady_clock::now();
        const Result<void> done = run();
        const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
        if (failed(state, done)) return;
        state.SetIterationTime(taken.count());
        rates.push_back(work / taken.count());
        limits::wait_for_idle_pool();
        for (Comparison& comparison : comparisons) comparison.add(rates.back());
    }
    state.counters[yardsticks.front().unit] = median(rates) / 1e9;
    for (const Comparison& comparison : comparisons) comparison.report(state);
}

}  // namespace kvjit::bench
