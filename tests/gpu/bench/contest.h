// Timing on a stream: contestants take turns, round after round, so that whatever else goes on in the machine meets all
// of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "limits/cuda/gpu.h"
#include "limits/cuda/loops.h"

namespace kvjit::bench {

class Contest {
public:
    explicit Contest(const gpu::Stream& stream) : stream_(stream) {}

    /// `enqueue` puts `calls` calls on the stream.
    void enter(std::function<void()> enqueue, double calls);
    void enter(const limits::CudaLoop& loop);
    /// Microseconds a call, by contestant and round. One round more comes first and doesn't count.
    std::vector<std::vector<double>> run(int rounds) const;

private:
    struct Contestant {
        std::function<void()> enqueue;
        double calls;
    };
    const gpu::Stream& stream_;
    std::vector<Contestant> contestants_;
};

/// What a limit's loop did in each round, a second: see limits::CudaLoop::work().
std::vector<double> rates_of(const limits::CudaLoop& loop, const std::vector<double>& microseconds);

}  // namespace kvjit::bench
