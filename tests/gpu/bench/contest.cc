#include "gpu/bench/contest.h"

#include <utility>

namespace kvjit::bench {
void Contest::enter(std::function<void()> enqueue, double calls) {
    contestants_.push_back({std::move(enqueue), calls});
}

void Contest::enter(const limits::CudaLoop& loop) {
    enter([&] { loop.enqueue(stream_); }, 1);
}

std::vector<std::vector<double>> Contest::run(int rounds) const {
    std::vector<std::vector<double>> times(contestants_.size());
    const gpu::Event start, end;
    for (int round = -1; round < rounds; ++round) {
        for (std::size_t i = 0; i < contestants_.size(); ++i) {
            start.record(stream_);
            contestants_[i].enqueue();
            end.record(stream_);
            const double taken = end.microseconds_since(start) / contestants_[i].calls;
            if (round >= 0) times[i].push_back(taken);
        }
    }
    return times;
}

std::vector<double> rates_of(const limits::CudaLoop& loop, const std::vector<double>& microseconds) {
    std::vector<double> rates;
    for (const double time : microseconds) rates.push_back(1e6 * loop.work() / time);
    return rates;
}

}  // namespace kvjit::bench
