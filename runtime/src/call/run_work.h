// What a run moves and computes at the least: for rates of runs.
#pragma once

#include <cstdint>

#include "batch/batch_view.h"
#include "kvjit/kvjit.h"

namespace kvjit::rt {

struct RunWork {
    // Bytes of the cache's keys and values with their scales: of new tokens, and of those that rows see, each once.
    std::int64_t stored = 0, read = 0;
    std::int64_t operations = 0;  // floating-point, of attention; a multiply-add is two

    /// Bytes of a run with these tensors: each element of the packed ones, and what of the cache they need.
    std::int64_t bytes(const gen::KernelSpec& spec, const kvjit_tensors& tensors) const;
};

/// Precondition: the batch's arrays lie in host memory and are checked; what wrong ones give is some number.
RunWork run_work(const BatchView& batch);

}  // namespace kvjit::rt
