// The whole use of kvjit in an engine's step: plan once, run on each layer.
#pragma once

#include <cstdint>
#include <vector>

#include "memory.h"
#include "model.h"
#include "options.h"
#include "programs.h"
#include "reference.h"
#include "tally.h"

namespace demo {

class StepRunner {
public:
    StepRunner(const Options& options, const Kernels& kernels, Memory& memory, CacheMemory& cache,
               Activations& activations);

    /// Puts made-up tokens into the cache, as an engine does that restores a saved prefix.
    void store_past(const RaggedBatch& batch);

    /// Stores the step's new tokens and attends, on each layer. Then looks at samples of one layer's result.
    void run(const RaggedBatch& batch, std::int64_t checked_layer, Tally& tally, Checker& checker);

private:
    kvjit::Plan plan(const kvjit::Kernel& kernel, const RaggedBatch& batch, const PlacedBatch& placed) const;
    std::vector<LayerCall> make_calls(const RaggedBatch& batch, std::int64_t checked_layer);
    const Half* take_new(const RaggedBatch& batch);
    kvjit::Tensors tensors(const RaggedBatch& batch, const LayerCall& call) const;

    const Kernels& kernels_;
    Memory& memory_;
    CacheMemory& cache_;
    Activations& activations_;
    bool on_cuda_;
    kvjit::PlanOptions plan_options_;
    Array<Half> output_, checked_output_;  // of one layer: the next one, or a check, is its only reader
    Array<char> workspace_;                // CUDA: so that planning takes no memory of the GPU
};

}  // namespace demo
