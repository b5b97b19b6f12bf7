#include "call.h"

#include <chrono>

namespace demo {
namespace {

constexpr std::size_t kWorkspaceBytes = std::size_t{64} << 20;  // a plan that needs more is refused, and says so

kvjit::Tensor rows(const Half* data, std::int64_t tokens, std::int64_t heads) {
    return {data, KVJIT_F16, {tokens, heads, Shape::kHeadDim}};
}

}  // namespace

Caller::Caller(const Options& options, Memory& memory, const CacheMemory& cache)
    : memory_(memory), cache_(cache), on_cuda_(options.place != Place::kCpu) {
    if (!on_cuda_) {
        options_.num_threads = static_cast<std::uint32_t>(options.threads);
        return;
    }
    workspace_ = take_array<char>(memory, kWorkspaceBytes);
    options_.workspace = workspace_.get();
    options_.workspace_bytes = kWorkspaceBytes;
}

kvjit::Plan Caller::plan(const kvjit::Kernel& kernel, const RaggedBatch& batch, const PlacedBatch& placed,
                         kvjit::PlanOptions options) const {
    const kvjit::Batch here = batch.view(cache_);
    if (on_cuda_) options.set_host_batch(here);  // what can be checked without waiting for the GPU
    return kernel.plan(placed.view(), options).value();
}

kvjit::Plan Caller::reading_plan(const kvjit::Kernel& kernel, const RaggedBatch& batch, const PlacedBatch& placed,
                                 int threads, const kvjit_executor* executor) const {
    kvjit::PlanOptions options = options_;
    options.stores_nothing = 1;
    options.executor = executor;
    options.num_threads = static_cast<std::uint32_t>(threads);
    return plan(kernel, batch, placed, options);
}

double Caller::run(kvjit::Plan& plan, const RaggedBatch& batch, const std::vector<LayerCall>& calls) const {
    const auto start = std::chrono::steady_clock::now();
    for (const LayerCall& call : calls) plan.run(tensors(batch, call), call.layer).value();
    plan.synchronize().value();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

kvjit::Tensors Caller::tensors(const RaggedBatch& batch, const LayerCall& call) const {
    const std::int64_t tokens = batch.new_tokens();
    kvjit::Tensors tensors;
    tensors.cache = cache_.cache();
    tensors.scale = cache_.scale();
    if (call.key != nullptr) {
        tensors.current_key = rows(call.key, tokens, Shape::kKvHeads);
        tensors.current_value = rows(call.value, tokens, Shape::kKvHeads);
    }
    if (call.query != nullptr) {
        tensors.query = rows(call.query, tokens, Shape::kHeads);
        tensors.attn_output = rows(call.output, tokens, Shape::kHeads);
    }
    return tensors;
}

}  // namespace demo
