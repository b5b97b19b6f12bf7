#include "gpu/bench/contest.h"

#include <algorithm>
#include <utility>

namespace kvjit::bench {
namespace {

constexpr std::size_t kCopyBytes = std::size_t{1} << 30;

/// Less on a device that has little.
std::size_t copy_bytes(const gpu::Gpu& gpu) {
    return std::min(kCopyBytes, gpu.memory().free_bytes / 16);
}

}  // namespace

void Contest::enter(std::function<void()> enqueue, double calls) {
    contestants_.push_back({std::move(enqueue), calls});
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

CopyYardstick::CopyYardstick(const gpu::Gpu& gpu) : from_(gpu, copy_bytes(gpu)), to_(gpu, from_.size()) {}

void CopyYardstick::enqueue(const gpu::Stream& stream) const {
    for (int i = 0; i < static_cast<int>(kCopies); ++i) {
        gpu::check(gpu::driver().copy_on_device(reinterpret_cast<gpu::DevicePointer>(to_.data()),
                                                reinterpret_cast<gpu::DevicePointer>(from_.data()), from_.size(),
                                                stream.get()),
                   "cuMemcpyDtoDAsync");
    }
}

}  // namespace kvjit::bench
