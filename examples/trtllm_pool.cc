// A decode step on TensorRT-LLM's pool: blocks of 32 tokens that hold all layers, (N, L, 2, Hkv, T, D), a table of
// their ids, and one plan for all layers.
#include <cstdio>
#include <vector>

#include "kvjit/kvjit.hpp"

constexpr std::int64_t kBlocks = 12, kLayers = 2, kColumns = 10;

int main() try {
    auto engine = kvjit::Engine::create().value();
    auto spec =
        kvjit::KernelSpec::parse(
            "op=MultiHeadCacheAttention,head_dim=128,group=4,t1=f32,layout=trtllm:pool,page_size=32,index_type=i32,"
            "starts_type=i32")
            .value();
    auto kernel = engine.kernel(spec).value();

    // Two requests, with 299 and 4 tokens in the cache, and one new token each.
    const std::vector<std::int32_t> starts{0, 1, 2}, lengths{300, 5};
    std::vector<std::int32_t> block_ids(2 * kColumns, -1);
    for (std::int32_t page = 0; page < kColumns; ++page) block_ids[page] = 11 - page;
    block_ids[kColumns] = 0;
    kvjit::Batch batch;
    batch.num_heads = 8;
    batch.num_layers = kLayers;
    batch.num_blocks = kBlocks;
    batch.set_seqstarts(starts).set_kvlens(lengths).set_cachestarts(block_ids, {2, kColumns});
    auto plan = kernel.plan(batch).value();

    std::vector<float> query(2 * 8 * 128, 0.1f), key(2 * 2 * 128, 0.2f), value(2 * 2 * 128, 0.3f), output(2 * 8 * 128);
    std::vector<float> pool(kBlocks * kLayers * 2 * 2 * 32 * 128);  // the past is zeros here
    kvjit::Tensors tensors;
    tensors.query = kvjit::Tensor(query, {2, 8, 128});
    tensors.current_key = kvjit::Tensor(key, {2, 2, 128});
    tensors.current_value = kvjit::Tensor(value, {2, 2, 128});
    tensors.cache = kvjit::Tensor(pool, {kBlocks, kLayers, 2, 2, 32, 128});
    tensors.attn_output = kvjit::Tensor(output, {2, 8, 128});
    for (std::int64_t layer = 0; layer < kLayers; ++layer) {
        plan.run(tensors, layer).value();
    }
    std::printf("attn_output[0, 0, 0] = %g, attn_output[1, 0, 0] = %g\n", output[0], output[8 * 128]);
} catch (const kvjit::Exception& refused) {
    return std::fprintf(stderr, "%s\n", refused.what()), 1;
}
