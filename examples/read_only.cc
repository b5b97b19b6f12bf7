// Attention that stores nothing: an encoder's keys and values are put into the cache once, and each step of the decoder
// only reads them. So two beams share the sequence's slots, and no store program is compiled for the steps.
#include <cstdint>
#include <cstdio>
#include <vector>

#include "kvjit/kvjit.hpp"

constexpr std::int64_t kHeads = 4, kDim = 64, kKeys = 10, kBeams = 2;

int main() try {
    const auto engine = kvjit::Engine::create().value();
    const auto spec =
        kvjit::KernelSpec::parse("op=MultiHeadCacheAttention,head_dim=64,group=1,t1=f32,layout=L2HTD").value();
    std::vector<float> cache(2 * kHeads * kKeys * kDim);
    kvjit::Tensors tensors;
    tensors.cache = kvjit::Tensor(cache, {1, 2, kHeads, kKeys, kDim});

    // Once: the encoder's keys. Values count from 0 to 9.
    const std::vector<std::int64_t> encoded{0, kKeys}, begin{0};
    std::vector<float> key(kKeys * kHeads * kDim, 0.5f), value(key.size());
    for (std::size_t i = 0; i < value.size(); ++i) {
        const std::size_t position = i / (kHeads * kDim);
        value[i] = static_cast<float>(position);
    }
    kvjit::Batch batch;
    batch.set_seqstarts(encoded).set_kvstarts(encoded);
    batch.num_heads = kHeads;
    batch.max_tokens = kKeys;
    batch.set_cachestarts(begin);
    tensors.current_key = kvjit::Tensor(key, {kKeys, kHeads, kDim});
    tensors.current_value = kvjit::Tensor(value, {kKeys, kHeads, kDim});
    engine.kernel(spec.for_op(KVJIT_OP_KEY_VALUE_CACHE).value()).value().plan(batch).value().run(tensors).value();

    // Each step: a row of each beam attends to all of them. They are the same slots, and stay as they are.
    const std::vector<std::int64_t> beams{0, 1, 2}, lengths{kKeys, kKeys}, begins{0, 0};
    std::vector<float> query(kBeams * kHeads * kDim, 0.1f), output(query.size());
    kvjit::Batch step;
    step.set_seqstarts(beams).set_kvlens(lengths);
    step.num_heads = kHeads;
    step.max_tokens = kKeys;
    step.decoding_batches = kBeams;
    step.set_cachestarts(begins);
    kvjit::PlanOptions options;
    options.stores_nothing = 1;
    auto plan = engine.kernel(spec).value().plan(step, options).value();
    kvjit::Tensors reads;
    reads.cache = tensors.cache;
    reads.query = kvjit::Tensor(query, {kBeams, kHeads, kDim});
    reads.attn_output = kvjit::Tensor(output, {kBeams, kHeads, kDim});
    plan.run(reads).value();
    std::printf("output[0] = %g, output[1] = %g\n", output[0], output[kHeads * kDim]);

    // New keys would have nowhere to go, so such a run is refused.
    reads.current_key = kvjit::Tensor(key.data(), KVJIT_F32, {kBeams, kHeads, kDim});
    reads.current_value = kvjit::Tensor(value.data(), KVJIT_F32, {kBeams, kHeads, kDim});
    std::printf("with new keys: %s\n", plan.run(reads).error().message());
} catch (const kvjit::Exception& refused) {
    return std::fprintf(stderr, "%s\n", refused.what()), 1;
}
