// The emulator's own numbers: the same on every machine for the same seed.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace kvjit::emulation {

/// Steele, Lea and Flood's SplitMix64.
class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}

    std::uint64_t next() {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }

    /// 0..limit-1, limit below 2^32.
    std::uint64_t below(std::uint64_t limit) { return ((next() >> 32) * limit) >> 32; }

    template <class T>
    void shuffle(std::vector<T>& values) {
        for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[below(i)]);
    }

private:
    std::uint64_t state_;
};

}  // namespace kvjit::emulation
