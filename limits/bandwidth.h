#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvjit::limits {

/// How a thread reads its part of the buffer: line by line; the same with software prefetches, 4 KiB ahead; or four
/// quarters of it in turns, a line each. Which is the fastest depends on the machine.
enum class ReadWay { kPlain, kPrefetched, kStreams };

/// What this machine reads from memory when a program does nothing else: threads that add up a buffer, each its own
/// part. The yardstick for decode, which does little but read keys and values.
class ReadLoop {
public:
    /// `bytes` should be several times the last-level cache.
    ReadLoop(std::size_t bytes, int threads);

    /// Reads the buffer once. Bytes a second. Throws as run_together does.
    double measure(ReadWay way = ReadWay::kPlain);

private:
    std::vector<std::uint64_t> words_;
    std::vector<std::uint64_t> sums_;
};

/// Cores that the process may run on, at least 1.
int usable_cores();

/// Bytes of the last-level cache; 0 if the system doesn't say.
std::size_t last_level_cache_bytes();

}  // namespace kvjit::limits
