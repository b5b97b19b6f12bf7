#include "bench/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <utility>

namespace kvjit::tool {
namespace {

constexpr std::int64_t kLeastRounds = 5;
constexpr double kLeastSeconds = 5e-3;  // of what is timed at once: clocks and sleeping threads don't count then

using Clock = std::chrono::steady_clock;

/// Between the values of the two ranks that are nearest.
double quantile(std::vector<double>& values, double rank) {
    std::ranges::sort(values);
    const double at = rank * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(at), above = std::min(below + 1, values.size() - 1);
    return std::lerp(values[below], values[above], at - std::floor(at));
}

/// Passes over all layers, with one of the workload's engines.
Result<void> start_passes(Workload& workload, std::size_t engine, std::int64_t passes) {
    for (std::int64_t pass = 0; pass < passes; ++pass) {
        for (std::int64_t layer = 0; layer < workload.layers; ++layer) {
            if (auto done = workload.start(layer, engine); !done) return fail(done.error());
        }
    }
    return {};
}

/// Passes that can be timed.
class TimedPasses {
public:
    static Result<TimedPasses> make(Workload& workload, std::size_t engine, const Device& device, std::int64_t passes) {
        auto work = device.prepare([&workload, engine, passes] { return start_passes(workload, engine, passes); });
        if (!work) return fail(work.error());
        return TimedPasses(*std::move(work), static_cast<double>(passes * workload.layers));
    }
    /// Of a call.
    Result<double> seconds() {
        Result<double> taken = work_->seconds();
        if (taken) *taken /= calls_;
        return taken;
    }

private:
    TimedPasses(std::unique_ptr<TimedWork> work, double calls) : work_(std::move(work)), calls_(calls) {}

    std::unique_ptr<TimedWork> work_;
    double calls_;
};

/// Passes that take kLeastSeconds or more. What the first ones cost, compiles among it, is past then.
Result<TimedPasses> enough_passes(Workload& workload, std::size_t engine, const Device& device) {
    if (auto started = start_passes(workload, engine, 1); !started) return fail(started.error());
    if (auto done = workload.finish(); !done) return fail(done.error());
    auto one = TimedPasses::make(workload, engine, device, 1);
    if (!one) return fail(one.error());
    const Result<double> call = one->seconds();
    if (!call) return fail(call.error());
    const auto passes = static_cast<std::int64_t>(kLeastSeconds / (*call * static_cast<double>(workload.layers))) + 1;
    return TimedPasses::make(workload, engine, device, passes);
}

/// A workload's calls by each of its engines.
class Contest {
public:
    static Result<Contest> make(Workload& workload, const Device& device, std::size_t engines) {
        Contest contest;
        for (std::size_t engine = 0; engine < engines; ++engine) {
            auto passes = enough_passes(workload, engine, device);
            if (!passes) return fail(passes.error());
            contest.passes_.push_back(*std::move(passes));
        }
        contest.seconds_.resize(engines);
        return contest;
    }
    /// A turn of each: the first one begins every other round, so that what drifts favours neither. Returns the first
    /// one's time for a call.
    Result<double> round() {
        const std::size_t engines = passes_.size();
        for (std::size_t turn = 0; turn < engines; ++turn) {
            const std::size_t engine = rounds_ % 2 == 0 ? turn : engines - 1 - turn;
            const Result<double> taken = passes_[engine].seconds();
            if (!taken) return taken;
            seconds_[engine].push_back(*taken);
        }
        ++rounds_;
        return seconds_[0].back();
    }
    Spread seconds() const { return spread_of(seconds_[0]); }
    std::optional<Rival> rival() const {
        if (passes_.size() == 1) return std::nullopt;
        std::vector<double> times;
        for (std::size_t round = 0; round < rounds_; ++round) times.push_back(seconds_[0][round] / seconds_[1][round]);
        return Rival{spread_of(seconds_[1]), spread_of(std::move(times))};
    }

private:
    std::vector<TimedPasses> passes_;
    std::vector<std::vector<double>> seconds_;  // of a call, in each round
    std::size_t rounds_ = 0;
};

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

Result<Measurement> measure(Workload& workload, kvjit_engine* engine, Device& device, double seconds, bool has_rival) {
    auto contest = Contest::make(workload, device, has_rival ? 2 : 1);
    if (!contest) return fail(contest.error());
    const kvjit_run_stats counted = work_of(engine);
    Measurement measured;
    measured.bytes = counted.bytes / counted.runs;
    measured.operations = counted.operations / counted.runs;
    Shares reading(measured.bytes), arithmetic(measured.operations);
    for (const auto start = Clock::now();
         measured.rounds < kLeastRounds || Clock::now() - start < std::chrono::duration<double>(seconds);
         ++measured.rounds) {
        const Result<double> call = contest->round();
        if (!call) return fail(call.error());
        const Result<double> read = device.read();
        if (!read) return fail(read.error());
        const Result<double> multiply_add = device.multiply_add(workload.t1);
        if (!multiply_add) return fail(multiply_add.error());
        reading.add(*call, *read);
        arithmetic.add(*call, *multiply_add);
    }
    if (auto done = workload.finish(); !done) return fail(done.error());
    measured.seconds = contest->seconds();
    measured.rival = contest->rival();
    measured.reading = reading.rate(measured.seconds.median);
    measured.arithmetic = arithmetic.rate(measured.seconds.median);
    return measured;
}

}  // namespace kvjit::tool
