// Counts of a kernel's runs.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "kvjit/kvjit.h"

namespace kvjit::rt {

/// Thread-safe. Counts of one run are added one by one: a reader may see some of them before others.
class RunCounts {
public:
    void add(std::chrono::nanoseconds taken, std::int64_t bytes, std::int64_t operations) {
        runs_.fetch_add(1, std::memory_order_relaxed);
        nanoseconds_.fetch_add(taken.count(), std::memory_order_relaxed);
        bytes_.fetch_add(bytes, std::memory_order_relaxed);
        operations_.fetch_add(operations, std::memory_order_relaxed);
    }
    kvjit_run_stats stats() const {
        return {.struct_size = sizeof(kvjit_run_stats),
                .runs = runs_,
                .seconds = static_cast<double>(nanoseconds_) * 1e-9,
                .bytes = bytes_,
                .operations = operations_};
    }

private:
    std::atomic<std::int64_t> runs_{0}, nanoseconds_{0}, bytes_{0}, operations_{0};
};

}  // namespace kvjit::rt
