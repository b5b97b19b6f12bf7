// Timing on a stream: contestants take turns, round after round, so that whatever else goes on in the machine meets all
// of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "limits/cuda/gpu.h"

namespace kvjit::bench {

class Contest {
public:
    explicit Contest(const gpu::Stream& stream) : stream_(stream) {}

    /// `enqueue` puts `calls` calls on the stream.
    void enter(std::function<void()> enqueue, double calls);
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

/// The device's own copy, the yardstick of what is bound by memory.
class CopyYardstick {
public:
    explicit CopyYardstick(const gpu::Gpu& gpu);
    /// Puts some copies on the stream.
    void enqueue(const gpu::Stream& stream) const;
    static constexpr double kCopies = 4;
    /// Gigabytes a second, read and written, where a copy takes so long.
    double rate(double microseconds) const { return 2 * static_cast<double>(from_.size()) / microseconds / 1e3; }

private:
    gpu::DeviceMemory from_, to_;
};

}  // namespace kvjit::bench
