// A decode step on llama.cpp's cache: for each layer a tensor of keys and one of values, float16, in which each
// sequence has a stretch of cells of its own. One plan serves all layers: a run is given the layer's tensors.
#include <cstdio>
#include <vector>

#include "kvjit/kvjit.hpp"

constexpr std::int64_t kLayers = 2, kCells = 512;  // of a sequence

int fail(const kvjit::Error& error) {
    return std::fprintf(stderr, "%s\n", error.message()), 1;
}

int main() {
    auto engine = kvjit::Engine::create();
    if (!engine) return fail(engine.error());
    auto spec =
        kvjit::KernelSpec::parse("op=MultiHeadCacheAttention,head_dim=128,group=4,t1=f32,t2=f16,layout=llama.cpp");
    if (!spec) return fail(spec.error());
    auto kernel = engine->kernel(*spec);
    if (!kernel) return fail(kernel.error());

    // Two sequences, with 299 and 4 tokens in the cache, and one new token each.
    const std::vector<std::int64_t> starts{0, 1, 2}, lengths{300, 5}, first_cells{kCells, 0};
    kvjit::Batch batch;
    batch.batch_size = 2;
    batch.num_heads = 8;
    batch.max_tokens = 2 * kCells;
    batch.seqstarts = starts.data();
    batch.kvlens = lengths.data();
    batch.cachestarts = kvjit::Tensor(first_cells.data(), KVJIT_I64, {2});
    auto plan = kernel->plan(batch);
    if (!plan) return fail(plan.error());

    std::vector<float> query(2 * 8 * 128, 0.1f), key(2 * 2 * 128, 0.2f), value(2 * 2 * 128, 0.3f), output(2 * 8 * 128);
    kvjit::Tensors tensors;
    tensors.query = kvjit::Tensor(query.data(), KVJIT_F32, {2, 8, 128});
    tensors.current_key = kvjit::Tensor(key.data(), KVJIT_F32, {2, 2, 128});
    tensors.current_value = kvjit::Tensor(value.data(), KVJIT_F32, {2, 2, 128});
    tensors.attn_output = kvjit::Tensor(output.data(), KVJIT_F32, {2, 8, 128});
    struct Layer {  // float16, (cell, head, D); the past is zeros here
        std::vector<std::uint16_t> keys = std::vector<std::uint16_t>(2 * kCells * 2 * 128);
        std::vector<std::uint16_t> values = keys;
    };
    std::vector<Layer> layers(kLayers);
    for (Layer& layer : layers) {
        tensors.key_cache = kvjit::Tensor(layer.keys.data(), KVJIT_F16, {2 * kCells, 2, 128});
        tensors.value_cache = kvjit::Tensor(layer.values.data(), KVJIT_F16, {2 * kCells, 2, 128});
        if (auto done = plan->run(tensors); !done) return fail(done.error());
    }
    std::printf("attn_output[0, 0, 0] = %g, attn_output[1, 0, 0] = %g\n", output[0], output[8 * 128]);
}
