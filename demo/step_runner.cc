#include "step_runner.h"

#include <chrono>

#include "load.h"
#include "must.h"

namespace demo {
namespace {

constexpr std::size_t kWorkspaceBytes = std::size_t{64} << 20;  // a plan that needs more is refused, and says so

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

kvjit::Tensor rows(const Half* data, std::int64_t tokens, std::int64_t heads) {
    return {data, KVJIT_F16, {tokens, heads, Shape::kHeadDim}};
}

Array<Half> take_output(const Options& options, Memory& memory) {
    return take_array<Half>(memory, load_of(options.place).step_tokens() * Shape::kHeads * Shape::kHeadDim);
}

}  // namespace

StepRunner::StepRunner(const Options& options, const Kernels& kernels, Memory& memory, CacheMemory& cache,
                       Activations& activations)
    : kernels_(kernels),
      memory_(memory),
      cache_(cache),
      activations_(activations),
      on_cuda_(options.place != Place::kCpu),
      output_(take_output(options, memory)),
      checked_output_(take_output(options, memory)) {
    if (!on_cuda_) {
        plan_options_.num_threads = static_cast<std::uint32_t>(options.threads);
        return;
    }
    workspace_ = take_array<char>(memory, kWorkspaceBytes);
    plan_options_.workspace = workspace_.get();
    plan_options_.workspace_bytes = kWorkspaceBytes;
}

kvjit::Plan StepRunner::plan(const kvjit::Kernel& kernel, const RaggedBatch& batch, const PlacedBatch& placed) const {
    const kvjit::Batch here = batch.view(cache_);
    kvjit::PlanOptions options = plan_options_;
    if (on_cuda_) options.host_batch = &here;  // what can be checked without waiting for the GPU
    return must(kernel.plan(placed.view(), options));
}

void StepRunner::store_past(const RaggedBatch& batch) {
    const PlacedBatch placed(memory_, batch, cache_);
    kvjit::Plan plan = this->plan(kernels_.store, batch, placed);
    for (std::int64_t layer = 0; layer < cache_.layers(); ++layer) {
        must(plan.run(tensors(batch, {layer, nullptr, take_new(batch), take_new(batch), nullptr}), layer));
    }
    must(plan.synchronize());
}

void StepRunner::run(const RaggedBatch& batch, std::int64_t checked_layer, Tally& tally, Checker& checker) {
    const PlacedBatch placed(memory_, batch, cache_);
    const std::vector<LayerCall> calls = make_calls(batch, checked_layer);
    tally.add(batch, cache_.layers());
    memory_.settle();
    const auto planning = std::chrono::steady_clock::now();
    kvjit::Plan plan = this->plan(kernels_.attention, batch, placed);
    tally.plan_seconds += seconds_since(planning);
    const auto running = std::chrono::steady_clock::now();
    for (const LayerCall& call : calls) must(plan.run(tensors(batch, call), call.layer));
    must(plan.synchronize());
    tally.run_seconds += seconds_since(running);
    checker.check(cache_, batch, calls[checked_layer]);
}

std::vector<LayerCall> StepRunner::make_calls(const RaggedBatch& batch, std::int64_t checked_layer) {
    std::vector<LayerCall> calls;
    for (std::int64_t layer = 0; layer < cache_.layers(); ++layer) {
        const Half* query = activations_.take(batch.new_tokens(), Shape::kHeads);
        Half* output = layer == checked_layer ? checked_output_.get() : output_.get();
        calls.push_back({layer, query, take_new(batch), take_new(batch), output});
    }
    return calls;
}

const Half* StepRunner::take_new(const RaggedBatch& batch) {
    return activations_.take(batch.new_tokens(), Shape::kKvHeads);
}

kvjit::Tensors StepRunner::tensors(const RaggedBatch& batch, const LayerCall& call) const {
    const std::int64_t tokens = batch.new_tokens();
    kvjit::Tensors tensors;
    tensors.cache = cache_.cache();
    tensors.scale = cache_.scale();
    tensors.current_key = rows(call.key, tokens, Shape::kKvHeads);
    tensors.current_value = rows(call.value, tokens, Shape::kKvHeads);
    if (call.query == nullptr) return tensors;  // KeyValueCache takes no query
    tensors.query = rows(call.query, tokens, Shape::kHeads);
    tensors.attn_output = rows(call.output, tokens, Shape::kHeads);
    return tensors;
}

}  // namespace demo
