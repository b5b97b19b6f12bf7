#include "step_runner.h"

#include <chrono>

#include "must.h"

namespace demo {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

kvjit::Tensor rows(const Half* data, std::int64_t tokens, std::int64_t heads) {
    return {data, KVJIT_F16, {tokens, heads, Shape::kHeadDim}};
}

}  // namespace

StepRunner::StepRunner(const Kernels& kernels, CacheMemory& memory, Activations& activations, int threads)
    : kernels_(kernels), memory_(memory), activations_(activations) {
    plan_options_.num_threads = static_cast<std::uint32_t>(threads);
}

void StepRunner::store_past(const RaggedBatch& batch) {
    kvjit::Plan plan = must(kernels_.store.plan(batch.view(memory_), plan_options_));
    for (std::int64_t layer = 0; layer < memory_.layers(); ++layer) {
        must(plan.run(tensors(batch, {layer, nullptr, take_new(batch), take_new(batch), nullptr}), layer));
    }
}

void StepRunner::run(const RaggedBatch& batch, std::int64_t checked_layer, Tally& tally, Checker& checker) {
    output_.resize(static_cast<std::size_t>(batch.new_tokens() * Shape::kHeads * Shape::kHeadDim));
    tally.add(batch, memory_.layers());
    const auto planning = std::chrono::steady_clock::now();
    kvjit::Plan plan = must(kernels_.attention.plan(batch.view(memory_), plan_options_));
    tally.plan_seconds += seconds_since(planning);
    for (std::int64_t layer = 0; layer < memory_.layers(); ++layer) {
        const Half* query = activations_.take(batch.new_tokens(), Shape::kHeads);
        const LayerCall call{layer, query, take_new(batch), take_new(batch), output_.data()};
        const kvjit::Tensors views = tensors(batch, call);
        const auto running = std::chrono::steady_clock::now();
        must(plan.run(views, layer));
        tally.run_seconds += seconds_since(running);
        if (layer == checked_layer) checker.check(memory_, batch, call);
    }
}

const Half* StepRunner::take_new(const RaggedBatch& batch) {
    return activations_.take(batch.new_tokens(), Shape::kKvHeads);
}

kvjit::Tensors StepRunner::tensors(const RaggedBatch& batch, const LayerCall& call) const {
    const std::int64_t tokens = batch.new_tokens();
    kvjit::Tensors tensors;
    tensors.cache = memory_.cache();
    tensors.scale = memory_.scale();
    tensors.current_key = rows(call.key, tokens, Shape::kKvHeads);
    tensors.current_value = rows(call.value, tokens, Shape::kKvHeads);
    if (call.query == nullptr) return tensors;  // KeyValueCache takes no query
    tensors.query = rows(call.query, tokens, Shape::kHeads);
    tensors.attn_output = rows(call.output, tokens, Shape::kHeads);
    return tensors;
}

}  // namespace demo
