// Plans that work in the caller's memory. The longest step says how much it takes; the plans of all steps then use the
// same block, one after the other, and neither planning nor running takes memory for partial results.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "kvjit/kvjit.hpp"

constexpr std::int64_t kHeads = 8, kKvHeads = 2, kDim = 128, kMaxTokens = 4096;

int main() try {
    const auto engine = kvjit::Engine::create().value();
    const auto spec =
        kvjit::KernelSpec::parse("op=MultiHeadCacheAttention,head_dim=128,group=4,t1=f32,layout=L2HTD").value();
    const auto kernel = engine.kernel(spec).value();

    const std::vector<std::int64_t> seqstarts{0, 1}, cachestarts{0};
    std::vector<std::int64_t> kvlens{kMaxTokens};  // the longest step
    kvjit::Batch batch;
    batch.set_seqstarts(seqstarts).set_kvlens(kvlens);
    batch.num_kv_heads = kKvHeads;
    batch.max_tokens = kMaxTokens;
    batch.decoding_batches = 1;
    batch.set_cachestarts(cachestarts);
    kvjit::PlanOptions options;
    options.num_threads = 4;
    const std::size_t bytes = kernel.plan(batch, options).value().workspace_bytes();

    const std::size_t room = (bytes + 63) / 64 * 64;  // aligned_alloc takes multiples of the alignment
    const std::unique_ptr<void, decltype(&std::free)> workspace(std::aligned_alloc(64, room), std::free);
    options.workspace = workspace.get();
    options.workspace_bytes = bytes - 1;
    std::printf("a byte less: %s\n", kernel.plan(batch, options).error().message());

    options.workspace_bytes = bytes;
    std::vector<float> cache(2 * kKvHeads * kMaxTokens * kDim), query(kHeads * kDim, 0.1f), output(query.size());
    std::vector<float> key(kKvHeads * kDim), value(key.size(), 1.0f);
    kvjit::Tensors tensors;
    tensors.cache = kvjit::Tensor(cache, {1, 2, kKvHeads, kMaxTokens, kDim});
    tensors.query = kvjit::Tensor(query, {1, kHeads, kDim});
    tensors.current_key = kvjit::Tensor(key, {1, kKvHeads, kDim});
    tensors.current_value = kvjit::Tensor(value, {1, kKvHeads, kDim});
    tensors.attn_output = kvjit::Tensor(output, {1, kHeads, kDim});
    for (kvlens[0] = kMaxTokens - 3; kvlens[0] <= kMaxTokens; ++kvlens[0]) {
        kernel.plan(batch, options).value().run(tensors).value();
    }
    // All keys are 0, so it is the mean of the values: four of them 1, the rest 0.
    std::printf("output[0] = %g\n", output[0]);
} catch (const kvjit::Exception& refused) {
    return std::fprintf(stderr, "%s\n", refused.what()), 1;
}
