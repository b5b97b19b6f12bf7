#include "limits/bandwidth.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "limits/together.h"

namespace kvjit::limits {
namespace {

constexpr std::size_t kLine = 64 / sizeof(std::uint64_t), kAhead = 4096 / sizeof(std::uint64_t);

/// kStreams parts of `count` words each, a cache line of each in turn, in sums of words that don't wait for each other.
template <std::size_t kStreams, bool kPrefetch>
[[gnu::always_inline]] inline std::uint64_t add_streams(const std::uint64_t* words, std::size_t count) {
    std::uint64_t sums[kStreams * kLine] = {};
    for (std::size_t i = 0; i + kLine <= count; i += kLine) {
        for (std::size_t stream = 0; stream < kStreams; ++stream) {
            const std::uint64_t* line = words + stream * count + i;
            if (kPrefetch) __builtin_prefetch(line + kAhead);
            for (std::size_t word = 0; word < kLine; ++word) sums[stream * kLine + word] += line[word];
        }
    }
    std::uint64_t sum = 0;
    for (const std::uint64_t part : sums) sum += part;
    return sum;
}

[[gnu::always_inline]] inline std::uint64_t add_lines(const std::uint64_t* words, std::size_t count, ReadWay way) {
    if (way == ReadWay::kPrefetched) return add_streams<1, true>(words, count);
    return way == ReadWay::kStreams ? add_streams<4, false>(words, count / 4) : add_streams<1, false>(words, count);
}

[[gnu::target("avx512f")]] std::uint64_t add_up_512(const std::uint64_t* words, std::size_t count, ReadWay way) {
    return add_lines(words, count, way);
}
[[gnu::target("avx2")]] std::uint64_t add_up_256(const std::uint64_t* words, std::size_t count, ReadWay way) {
    return add_lines(words, count, way);
}
std::uint64_t add_up_128(const std::uint64_t* words, std::size_t count, ReadWay way) {
    return add_lines(words, count, way);
}

/// With the widest vectors that the machine has.
std::uint64_t add_up(const std::uint64_t* words, std::size_t count, ReadWay way) {
    if (__builtin_cpu_supports("avx512f")) return add_up_512(words, count, way);
    if (__builtin_cpu_supports("avx2")) return add_up_256(words, count, way);
    return add_up_128(words, count, way);
}

}  // namespace

ReadLoop::ReadLoop(std::size_t bytes, int threads)
    : words_(bytes / sizeof(std::uint64_t), 1), sums_(static_cast<std::size_t>(threads)) {}

double ReadLoop::measure(ReadWay way) {
    const std::size_t part = words_.size() / sums_.size();
    const double seconds = run_together(static_cast<int>(sums_.size()),
                                        [=, this](int i) { sums_[i] = add_up(words_.data() + i * part, part, way); });
    return static_cast<double>(part * sums_.size() * sizeof(std::uint64_t)) / seconds;
}

int usable_cores() {
    cpu_set_t cores;
    if (::sched_getaffinity(0, sizeof cores, &cores) == 0) return CPU_COUNT(&cores);
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::size_t last_level_cache_bytes() {
    const long bytes = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
    return bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
}

}  // namespace kvjit::limits
