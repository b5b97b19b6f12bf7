// How decode's time grows: with keys, with cores, and from nothing to a small step.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "setup.h"

namespace kvjit::bench {
namespace {

constexpr bool kPages = true;
constexpr const char* kAttention = "MultiHeadCacheAttention";

Result<Plan> plan_on(const Call& call, int threads) {
    const auto kernel = shared_engine().kernel(call.spec);
    if (!kernel) return kernel.error();
    PlanOptions options;
    options.num_threads = threads;
    return kernel->plan(call.batch, options);
}

/// Seconds of `count` runs, one after the other; 0 after an error.
double seconds_of(Plan& plan, const Call& call, int count) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) {
        if (!run_layers(plan, call)) return 0;
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// One sequence of range(0) keys and one kv head, over as many layers as no cache holds, on one thread and on
/// thread_count() in turn. cores: how many times as fast the latter are. us: a layer's time (lengths.py draws it).
void BM_decode_length(benchmark::State& state) {
    const std::string spec = spec_text(kAttention, kF16, "L2HTD", kPages);
    Call::Size size{1, 1, state.range(0), 1, 1};
    size.layers = std::max<std::int64_t>(1, layers_beyond_cache(Call(spec, size).layer_bytes()) - 1);
    const Call call(spec, size);
    if (!call.right()) return state.SkipWithError("larger than the benchmarks' memory");
    auto one = plan_on(call, 1), all = plan_on(call, thread_count());
    if (failed(state, one) || failed(state, all)) return;
    std::vector<double> rates, single_rates, ratios, times, single_times;
    const double bytes = static_cast<double>(size.layers) * call.layer_bytes();
    for (auto _ : state) {
        const double single = seconds_of(*one, call, 1), together = seconds_of(*all, call, 1);
        state.SetIterationTime(together);
        rates.push_back(bytes / together / 1e9);
        single_rates.push_back(bytes / single / 1e9);
        ratios.push_back(single / together);
        times.push_back(together / static_cast<double>(size.layers) * 1e6);
        single_times.push_back(single / static_cast<double>(size.layers) * 1e6);
    }
    state.counters["us"] = median(times);
    state.counters["one_core_us"] = median(single_times);
    state.counters["GB/s"] = median(rates);
    state.counters["one_core_GB/s"] = median(single_rates);
    state.counters["cores"] = median(ratios);
}
BENCHMARK(BM_decode_length)
    ->ArgName("keys")
    ->RangeMultiplier(4)
    ->Range(1 << 10, 1 << 20)
    ->Iterations(9)
    ->Unit(benchmark::kMillisecond)
    ->UseManualTime();

/// A layer of one sequence of 128 keys in the processor's caches, beside what it can't do without: a run over one key
/// (the host's part and the threads'), and the arithmetic of all keys on one thread, shared by all.
void BM_step_over_floor(benchmark::State& state, const CacheKind& kind) {
    constexpr int kRuns = 200;
    const std::string spec = spec_text(kAttention, kind, "L2HTD", kPages);
    const Call step(spec, {1, 1, 128, 1}), empty(spec, {1, 1, 1, 1});
    auto all = plan_on(step, thread_count()), alone = plan_on(step, 1), none = plan_on(empty, thread_count());
    auto one_key = plan_on(empty, 1);
    if (failed(state, all) || failed(state, alone) || failed(state, none) || failed(state, one_key)) return;
    std::vector<double> steps, floors, over;
    for (auto _ : state) {
        const double taken = seconds_of(*all, step, kRuns) / kRuns * 1e6;
        const double arithmetic = (seconds_of(*alone, step, kRuns) - seconds_of(*one_key, empty, kRuns)) / kRuns * 1e6;
        const double floor = seconds_of(*none, empty, kRuns) / kRuns * 1e6 + arithmetic / thread_count();
        state.SetIterationTime(taken / 1e6);
        steps.push_back(taken);
        floors.push_back(floor);
        over.push_back(taken - floor);
    }
    state.counters["step_us"] = median(steps);
    state.counters["floor_us"] = median(floors);
    state.counters["over_us"] = median(over);
}
BENCHMARK_CAPTURE(BM_step_over_floor, f16, kF16)->Iterations(31)->Unit(benchmark::kMicrosecond)->UseManualTime();
BENCHMARK_CAPTURE(BM_step_over_floor, int8, kInt8)->Iterations(31)->Unit(benchmark::kMicrosecond)->UseManualTime();

}  // namespace
}  // namespace kvjit::bench
