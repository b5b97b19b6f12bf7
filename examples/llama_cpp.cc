// A decode step on llama.cpp's cache: for each layer a tensor of keys and one of values, float16, in which each
// sequence has a stretch of cells of its own. One plan serves all layers: a run is given the layer's tensors.
#include <cstdio>
#include <vector>

#include "kvjit/kvjit.hpp"

constexpr std::int64_t kLayers = 2, kCells = 512;  // of a sequence

int main() try {
    auto engine = kvjit::Engine::create().value();
    auto spec =
        kvjit::KernelSpec::parse("op=MultiHeadCacheAttention,head_dim=128,group=4,t1=f32,t2=f16,layout=llama.cpp")
            .value();
    auto kernel = engine.kernel(spec).value();

    // Two sequences, with 299 and 4 tokens in the cache, and one new token each.
    const std::vector<std::int64_t> starts{0, 1, 2}, lengths{300, 5}, first_cells{kCells, 0};
    kvjit::Batch batch;
    batch.num_heads = 8;
    batch.max_tokens = 2 * kCells;
    batch.set_seqstarts(starts).set_kvlens(lengths).set_cachestarts(first_cells);
    auto plan = kernel.plan(batch).value();

    std::vector<float> query(2 * 8 * 128, 0.1f), key(2 * 2 * 128, 0.2f), value(2 * 2 * 128, 0.3f), output(2 * 8 * 128);
    kvjit::Tensors tensors;
    tensors.query = kvjit::Tensor(query, {2, 8, 128});
    tensors.current_key = kvjit::Tensor(key, {2, 2, 128});
    tensors.current_value = kvjit::Tensor(value, {2, 2, 128});
    tensors.attn_output = kvjit::Tensor(output, {2, 8, 128});
    struct Layer {  // (cell, head, D); the past is zeros here
        std::vector<kvjit::half> keys = std::vector<kvjit::half>(2 * kCells * 2 * 128), values = keys;
    };
    std::vector<Layer> layers(kLayers);
    for (Layer& layer : layers) {
        tensors.key_cache = kvjit::Tensor(layer.keys, {2 * kCells, 2, 128});
        tensors.value_cache = kvjit::Tensor(layer.values, {2 * kCells, 2, 128});
        plan.run(tensors).value();
    }
    std::printf("attn_output[0, 0, 0] = %g, attn_output[1, 0, 0] = %g\n", output[0], output[8 * 128]);
} catch (const kvjit::Exception& refused) {
    return std::fprintf(stderr, "%s\n", refused.what()), 1;
}
