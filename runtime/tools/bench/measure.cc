#include "bench/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "limits/arithmetic.h"
#include "limits/bandwidth.h"
#include "limits/together.h"

namespace kvjit::tool {
namespace {

constexpr std::int64_t kLeastRounds = 5;
constexpr double kLeastSeconds = 5e-3;  // of what is timed at once: clocks and sleeping threads don't count then
constexpr std::size_t kLeastRead = std::size_t{256} << 20;

using Clock = std::chrono::steady_clock;

/// Between the values of the two ranks that are nearest.
double quantile(std::vector<double>& values, double rank) {
    std::ranges::sort(values);
    const double at = rank * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(at), above = std::min(below + 1, values.size() - 1);
    return std::lerp(values[below], values[above], at - std::floor(at));
}

/// Seconds of a call, over passes over all layers.
Result<double> time_passes(Workload& workload, std::int64_t passes) {
    const auto start = Clock::now();
    for (std::int64_t pass = 0; pass < passes; ++pass) {
        for (std::int64_t layer = 0; layer < workload.layers; ++layer) {
            if (auto done = workload.run(layer); !done) return fail(done.error());
        }
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return seconds / static_cast<double>(passes * workload.layers);
}

/// Of the engine's only kernel, for each run.
kvjit_run_stats work_of(kvjit_engine* engine) {
    kvjit_run_stats counted{};
    const auto take = [](void* context, const char*, const char*, const kvjit_run_stats* stats) {
        *static_cast<kvjit_run_stats*>(context) = *stats;
    };
    kvjit_engine_run_stats(engine, take, &counted, nullptr);
    return counted;
}

/// What a call does in each round, held against a limit measured in the same round.
class Shares {
public:
    explicit Shares(std::int64_t work) : work_(static_cast<double>(work)) {}
    void add(double seconds, double limit) {
        limits_.push_back(limit);
        shares_.push_back(work_ / seconds / limit);
    }
    Rate rate(double seconds) { return {work_ / seconds, quantile(limits_, 0.5), quantile(shares_, 0.5)}; }

private:
    double work_;
    std::vector<double> limits_, shares_;
};

}  // namespace

Spread spread_of(std::vector<double> values) {
    return {quantile(values, 0.5), quantile(values, 0.1), quantile(values, 0.9)};
}

MachineLimits::MachineLimits(int threads) : threads_(threads) {}
MachineLimits::~MachineLimits() = default;

double MachineLimits::read() {
    const std::size_t bytes = std::max(kLeastRead, 2 * limits::last_level_cache_bytes());
    if (!loop_) loop_ = std::make_unique<limits::ReadLoop>(bytes, threads_);
    return loop_->measure(limits::ReadWay::kPrefetched);
}

double MachineLimits::multiply_add() {
    return limits::measure_arithmetic(threads_);
}

Result<Measurement> measure(Workload& workload, kvjit_engine* engine, MachineLimits& limits, double seconds) {
    Result<double> call = time_passes(workload, 1);  // compiles
    if (call) call = time_passes(workload, 1);
    if (!call) return fail(call.error());
    const auto passes = static_cast<std::int64_t>(kLeastSeconds / (*call * static_cast<double>(workload.layers))) + 1;
    const kvjit_run_stats counted = work_of(engine);
    Measurement measured;
    measured.bytes = counted.bytes / counted.runs;
    measured.operations = counted.operations / counted.runs;
    std::vector<double> taken;
    Shares reading(measured.bytes), arithmetic(measured.operations);
    for (const auto start = Clock::now();
         measured.rounds < kLeastRounds || Clock::now() - start < std::chrono::duration<double>(seconds);
         ++measured.rounds) {
        call = time_passes(workload, passes);
        if (!call) return fail(call.error());
        taken.push_back(*call);
        limits::wait_for_idle_pool();
        reading.add(*call, limits.read());
        arithmetic.add(*call, limits.multiply_add());
    }
    measured.seconds = spread_of(std::move(taken));
    measured.reading = reading.rate(measured.seconds.median);
    measured.arithmetic = arithmetic.rate(measured.seconds.median);
    return measured;
}

}  // namespace kvjit::tool
