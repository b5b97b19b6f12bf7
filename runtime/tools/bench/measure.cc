#include "bench/measure.h"

#include <algorithm>
#include <chrono>

#include "limits/arithmetic.h"
#include "limits/bandwidth.h"
#include "limits/together.h"

namespace kvjit::tool {
namespace {

constexpr std::int64_t kLeastRounds = 5;
constexpr std::size_t kLeastRead = std::size_t{256} << 20;

using Clock = std::chrono::steady_clock;

double quantile(std::vector<double>& values, double rank) {
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(rank * static_cast<double>(values.size() - 1) + 0.5);
    std::ranges::nth_element(values, at);
    return *at;
}

/// Seconds of a call, over a pass of them.
Result<double> pass(Workload& workload) {
    const auto start = Clock::now();
    for (std::int64_t layer = 0; layer < workload.layers; ++layer) {
        if (auto done = workload.run(layer); !done) return fail(done.error());
    }
    return std::chrono::duration<double>(Clock::now() - start).count() / static_cast<double>(workload.layers);
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

class Rates {
public:
    void add(double rate, double limit) {
        rates_.push_back(rate);
        limits_.push_back(limit);
        shares_.push_back(rate / limit);
    }
    Rate medians() { return {quantile(rates_, 0.5), quantile(limits_, 0.5), quantile(shares_, 0.5)}; }

private:
    std::vector<double> rates_, limits_, shares_;
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
    if (auto warm = pass(workload); !warm) return fail(warm.error());
    const kvjit_run_stats counted = work_of(engine);
    Measurement measured;
    measured.bytes = counted.bytes / counted.runs;
    measured.operations = counted.operations / counted.runs;
    std::vector<double> taken;
    Rates reading, arithmetic;
    for (const auto start = Clock::now();
         measured.rounds < kLeastRounds || Clock::now() - start < std::chrono::duration<double>(seconds);
         ++measured.rounds) {
        const Result<double> call = pass(workload);
        if (!call) return fail(call.error());
        taken.push_back(*call);
        limits::wait_for_idle_pool();
        reading.add(static_cast<double>(measured.bytes) / *call, limits.read());
        arithmetic.add(static_cast<double>(measured.operations) / *call, limits.multiply_add());
    }
    measured.seconds = spread_of(std::move(taken));
    measured.reading = reading.medians();
    measured.arithmetic = arithmetic.medians();
    return measured;
}

}  // namespace kvjit::tool
