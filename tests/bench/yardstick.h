// What this machine can do at all, and kernels held against it.
#pragma once

#include <benchmark/benchmark.h>

#include <functional>
#include <vector>

#include "kvjit/kvjit.hpp"

namespace kvjit::bench {

/// A limit of the machine, on thread_count() threads.
struct Yardstick {
    const char* name;
    const char* unit;  // of 1e9 a second
    std::function<double()> measure;
};
/// Bytes of a loop that only reads, memory beyond the last-level cache: line by line, with software prefetches, and as
/// four streams a thread.
extern const Yardstick kRead, kReadPrefetched, kReadStreams;
/// Bytes that memcpy has copied, memory beyond the last-level cache.
extern const Yardstick kCopy;
/// Floating-point operations of a loop of multiply-adds in registers, with the widest vectors that the machine has.
extern const Yardstick kArithmetic;
/// Floating-point operations of a loop that loads AMX's tiles from the first-level cache and multiplies bfloat16.
extern const Yardstick kTiles;

/// kArithmetic, and kTiles where the machine has AMX.
std::vector<Yardstick> arithmetic_yardsticks();

/// Times `run`, once an iteration, each time followed by the yardsticks. A run does `work` of what they count. Counters
/// are medians over the runs: the rate, the yardsticks', and its ratios to them, each run's with the measurements right
/// after it; of the ratios the first decile, too. Medians, because on a shared machine a few runs take several times as
/// long as the rest.
void run_beside(benchmark::State& state, const std::vector<Yardstick>& yardsticks, double work,
                const std::function<Result<void>()>& run);

}  // namespace kvjit::bench
