#include "call.h"

namespace kvjit::test {

ApiCall make_call(std::int64_t sequences, std::int64_t tokens, std::int64_t keys, const char* spec) {
    ApiCall call(even_shape(spec, sequences, tokens, keys));
    call.batch.decoding_batches = sequences;
    call.batch.max_seqlen = tokens;
    call.batch.max_kvlen = keys;
    call.tensors.lse = Tensor();
    Rng rng(7);
    draw_inputs(call.tensors, rng);
    return call;
}

std::uint64_t output_hash(const ApiCall& call) {
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (const std::byte byte : bytes_of(call.tensors.attn_output)) {
        hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3U;
    }
    return hash;
}

Result<void> plan_and_run(const Kernel& kernel, const ApiCall& call, const PlanOptions& options) {
    auto plan = kernel.plan(call.batch, options);
    if (!plan) return plan.error();
    return plan->run(call.tensors);
}

Result<Kernel> call_kernel(const EngineOptions& options) {
    const auto spec = KernelSpec::parse(kCallSpec);
    if (!spec) return spec.error();
    const auto engine = Engine::create(options);
    if (!engine) return engine.error();
    return engine->kernel(*spec);
}

}  // namespace kvjit::test
