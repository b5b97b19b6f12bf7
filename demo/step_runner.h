// The whole use of kvjit in an engine's step: plan once, run on each layer.
#pragma once

#include <cstdint>
#include <vector>

#include "call.h"
#include "programs.h"
#include "tally.h"

namespace demo {

class StepRunner {
public:
    /// `new_tokens`: what a step has at most.
    StepRunner(const Kernels& kernels, const Caller& caller, Activations& activations, std::int64_t new_tokens);

    /// Puts made-up tokens into the cache, as an engine does that restores a saved prefix.
    void store_past(const RaggedBatch& batch);

    /// Stores the step's new tokens and attends, on each layer. Returns the calls, one a layer in their order; of the
    /// outputs only the checked layer's stays.
    std::vector<LayerCall> run(const RaggedBatch& batch, std::int64_t checked_layer, Tally& tally);

private:
    std::vector<LayerCall> make_calls(const RaggedBatch& batch, std::int64_t checked_layer);
    const Half* take_new(const RaggedBatch& batch) { return activations_.take(batch.new_tokens(), Shape::kKvHeads); }

    const Kernels& kernels_;
    const Caller& caller_;
    Activations& activations_;
    Array<Half> output_, checked_output_;  // of one layer: the next one, or a check, is its only reader
};

}  // namespace demo
