#include "step_runner.h"

#include <chrono>

namespace demo {

StepRunner::StepRunner(const Kernels& kernels, const Caller& caller, Activations& activations, std::int64_t new_tokens)
    : kernels_(kernels),
      caller_(caller),
      activations_(activations),
      output_(take_array<Half>(caller.memory(), new_tokens * Shape::kHeads * Shape::kHeadDim)),
      checked_output_(take_array<Half>(caller.memory(), new_tokens * Shape::kHeads * Shape::kHeadDim)) {}

void StepRunner::store_past(const RaggedBatch& batch) {
    const PlacedBatch placed(caller_.memory(), batch, caller_.cache());
    kvjit::Plan plan = caller_.plan(kernels_.store, batch, placed);
    std::vector<LayerCall> calls;
    for (std::int64_t layer = 0; layer < caller_.cache().layers(); ++layer) {
        calls.push_back({layer, nullptr, take_new(batch), take_new(batch), nullptr});
    }
    caller_.run(plan, batch, calls);
}

std::vector<LayerCall> StepRunner::run(const RaggedBatch& batch, std::int64_t checked_layer, Tally& tally) {
    const PlacedBatch placed(caller_.memory(), batch, caller_.cache());
    const std::vector<LayerCall> calls = make_calls(batch, checked_layer);
    caller_.memory().settle();
    const auto start = std::chrono::steady_clock::now();
    kvjit::Plan plan = caller_.plan(kernels_.attention, batch, placed);
    const std::chrono::duration<double> planning = std::chrono::steady_clock::now() - start;
    tally.add(batch, planning.count(), caller_.run(plan, batch, calls));
    return calls;
}

std::vector<LayerCall> StepRunner::make_calls(const RaggedBatch& batch, std::int64_t checked_layer) {
    std::vector<LayerCall> calls;
    for (std::int64_t layer = 0; layer < caller_.cache().layers(); ++layer) {
        const Half* query = activations_.take(batch.new_tokens(), Shape::kHeads);
        Half* output = layer == checked_layer ? checked_output_.get() : output_.get();
        calls.push_back({layer, query, take_new(batch), take_new(batch), output});
    }
    return calls;
}

}  // namespace demo
