// What this machine can do at all, and kernels held against it.
#pragma once

#include <benchmark/benchmark.h>

#include <functional>

#include "kvjit/kvjit.hpp"

namespace kvjit::bench {

/// A limit of the machine, on thread_count() threads.
struct Yardstick {
    const char* name;
    const char* unit;  // of 1e9 a second
    std::function<double()> measure;
};
/// Bytes of a loop that only reads, memory beyond the last-level cache.
extern const Yardstick kRead;
/// Bytes that memcpy has copied, memory beyond the last-level cache.
extern const Yardstick kCopy;
/// Floating-point operations of a loop of multiply-adds in registers, with the widest vectors that the machine has.
extern const Yardstick kArithmetic;

/// Times `run`, once an iteration, each time followed by the yardstick. A run does `work` of what the yardstick counts.
/// Counters are medians over the runs: the rate, the yardstick's, and their ratio, each run's with the measurement
/// right after it; of the ratios the first decile, too. Medians, because on a shared machine a few runs take several
/// times as long as the rest.
void run_beside(benchmark::State& state, const Yardstick& yardstick, double work,
                const std::function<Result<void>()>& run);

}  // namespace kvjit::bench
