#pragma once

#include <cstdint>
#include <string>

#include "machine.h"
#include "memory.h"
#include "options.h"
#include "programs.h"
#include "reference.h"
#include "tally.h"

namespace demo {

struct LoopResult {
    Tally decode_only, mixed;
    std::int64_t sequences = 0, finished = 0;
    std::string peer;  // who attended beside kvjit; "": nobody
};

/// Runs the steps of an engine with `layers` layers, in memory that the kernels' target reaches.
LoopResult run_loop(const Options& options, const Kernels& kernels, std::int64_t layers, Machine& machine,
                    Checker& checker);

/// The wanted number of layers, or as many as fit into half of the free memory.
std::int64_t layers_that_fit(const Options& options, const Memory& memory);

/// Bytes of the caches of so many layers.
std::int64_t cache_bytes(const Options& options, std::int64_t layers);

}  // namespace demo
