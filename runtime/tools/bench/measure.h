// How long a workload's calls take, beside what the machine can do at all.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bench/device.h"
#include "bench/workload.h"

namespace kvjit::tool {

/// A median, and the tenths below and above which the smallest and the largest values lie.
struct Spread {
    double median = 0, p10 = 0, p90 = 0;
};
Spread spread_of(std::vector<double> values);

/// The rate of a call of median time, and medians over the rounds: of the machine's limit, and of the calls' share of
/// it.
struct Rate {
    double each = 0, limit = 0, share = 0;  // a second
};

/// The same calls with other kernels, in turns.
struct Rival {
    Spread seconds;  // of a call
    Spread times;    // a call's own time over the rival's, in each round
};

struct Measurement {
    Spread seconds;  // of a call
    std::optional<Rival> rival;
    std::int64_t rounds = 0;
    std::int64_t bytes = 0, operations = 0;  // of a call: see kvjit_run_stats
    Rate reading, arithmetic;                // bytes, and floating-point operations
};

/// Runs rounds for about `seconds`, five at least: passes over the workload's layers, some milliseconds, and then both
/// limits. `engine`: of the workload's calls alone; it counts runs. has_rival: whether the workload has the kernels of
/// another engine, which take turns with its own. Errors: kvjit's, or the driver's.
Result<Measurement> measure(Workload& workload, kvjit_engine* engine, Device& device, double seconds, bool has_rival);

}  // namespace kvjit::tool
