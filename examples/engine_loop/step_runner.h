// The whole use of kvjit in an engine's step: plan once, run on each layer.
#pragma once

#include <cstdint>
#include <vector>

#include "model.h"
#include "programs.h"
#include "reference.h"
#include "tally.h"

namespace demo {

class StepRunner {
public:
    /// `threads`: of kvjit's pool.
    StepRunner(const Kernels& kernels, CacheMemory& memory, Activations& activations, int threads);

    /// Puts made-up tokens into the cache, as an engine does that restores a saved prefix.
    void store_past(const RaggedBatch& batch);

    /// Stores the step's new tokens and attends, on each layer. Looks at samples of one layer's result, if asked to.
    void run(const RaggedBatch& batch, std::int64_t checked_layer, Tally& tally, Checker& checker);

private:
    const Half* take_new(const RaggedBatch& batch);
    kvjit::Tensors tensors(const RaggedBatch& batch, const LayerCall& call) const;

    const Kernels& kernels_;
    CacheMemory& memory_;
    Activations& activations_;
    kvjit::PlanOptions plan_options_;
    std::vector<Half> output_;
};

}  // namespace demo
