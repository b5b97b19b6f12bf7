#pragma once

#include <cstdint>

#include "options.h"
#include "programs.h"
#include "reference.h"
#include "tally.h"

namespace demo {

struct LoopResult {
    Tally decode_only, mixed;
    std::int64_t sequences = 0, finished = 0;
};

/// Runs the steps of an engine with `layers` layers on `threads` threads.
LoopResult run_loop(const Options& options, const Kernels& kernels, std::int64_t layers, int threads, Checker& checker);

/// The wanted number of layers, or as many as fit into half of the free memory.
std::int64_t layers_that_fit(std::int64_t wanted);

/// Bytes of the caches of so many layers.
std::int64_t cache_bytes(std::int64_t layers);

}  // namespace demo
