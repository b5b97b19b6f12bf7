// Where calls run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "kvjit/kvjit.h"

namespace kvjit::tool {

/// Gives the address at which kernels shall find these bytes.
using Place = std::function<void*(const void* data, std::size_t bytes)>;

/// What every call of a command shares.
struct Machine {
    kvjit_engine* engine;
    const kvjit_target* target;
    std::uint32_t num_threads;  // 0: one a core
    bool on_cuda;               // a GPU, or its emulation
    void* stream = nullptr;     // of CUDA, that runs go to
    Place place = {};           // empty: kernels find everything where it is
};

/// For a plan of a batch whose arrays are in host memory in `host`.
kvjit_plan_options plan_options(const Machine& machine, const kvjit_batch& host);

}  // namespace kvjit::tool
