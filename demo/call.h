// One call of kvjit: a batch becomes a plan, and a layer's memory a run's tensors.
#pragma once

#include <cstdint>
#include <vector>

#include "kvjit/kvjit.hpp"
#include "memory.h"
#include "model.h"
#include "options.h"

namespace demo {

/// What a call reads and writes on one layer. Without a query it only stores, without keys and values only attends.
struct LayerCall {
    std::int64_t layer;
    const Half* query;  // (S, H, D)
    const Half* key;    // (S, Hkv, D)
    const Half* value;  // (S, Hkv, D)
    Half* output;       // (S, H, D)
};

/// Plans and runs calls on one cache. Of its plans one lives at a time: on GPUs they share a workspace.
class Caller {
public:
    Caller(const Options& options, Memory& memory, const CacheMemory& cache);

    const CacheMemory& cache() const { return cache_; }
    Memory& memory() const { return memory_; }

    /// A plan of the step's batch. `placed` is `batch` where kernels reach it, and outlives the plan.
    kvjit::Plan plan(const kvjit::Kernel& kernel, const RaggedBatch& batch, const PlacedBatch& placed) const {
        return plan(kernel, batch, placed, options_);
    }
    /// One that only reads the cache, on so many threads of kvjit's pool (GPUs have none), or on an executor, which
    /// outlives the plan.
    kvjit::Plan reading_plan(const kvjit::Kernel& kernel, const RaggedBatch& batch, const PlacedBatch& placed,
                             int threads, const kvjit_executor* executor = nullptr) const;

    /// Runs the plan of `batch` for each call and waits until all are done. Returns the seconds that this took.
    double run(kvjit::Plan& plan, const RaggedBatch& batch, const std::vector<LayerCall>& calls) const;

private:
    kvjit::Plan plan(const kvjit::Kernel& kernel, const RaggedBatch& batch, const PlacedBatch& placed,
                     kvjit::PlanOptions options) const;
    kvjit::Tensors tensors(const RaggedBatch& batch, const LayerCall& call) const;

    Memory& memory_;
    const CacheMemory& cache_;
    bool on_cuda_;
    kvjit::PlanOptions options_;
    Array<char> workspace_;  // CUDA: so that planning takes no memory of the GPU
};

}  // namespace demo
