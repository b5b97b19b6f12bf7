// A launch of a kernel.
#pragma once

#include <vector>

#include "ptx/machine/kernel.h"
#include "ptx/machine/memory.h"
#include "ptx/machine/options.h"

namespace kvjit::ptx {

struct Launch {
    u32 blocks_x = 1, blocks_y = 1;
    u32 threads = 1;
    u32 shared_bytes = 0;
    std::vector<std::byte> parameters;  // kernel.parameter_bytes
};

/// Runs all blocks, in an order of options.seed, some of them in turns. Errors: Fault; what blocks have stored until
/// then may be there or not.
void run_grid(const Kernel& kernel, const Launch& launch, std::vector<Range> memory, const Options& options);

}  // namespace kvjit::ptx
