// Out of an engine's blocks into a chunk of LMCache's, KV_2LTD: keys of all layers, then values, each (L, T, Hkv, D)
// and contiguous. KeyValueCache loads each layer to its place there; then the chunk is itself a cache that kvjit reads.
#include <cstdio>
#include <string>
#include <vector>

#include "kvjit/kvjit.hpp"

constexpr std::int64_t kBlocks = 20, kLayers = 2, kTokens = 256, kHeads = 2, kDim = 128, kRow = kHeads * kDim;

/// A plan for one sequence of kTokens keys that stores nothing.
kvjit::Plan reader(const kvjit::Engine& engine, const char* layout, const kvjit::Tensor& cachestarts) {
    auto spec = kvjit::KernelSpec::parse(std::string("op=KeyValueCache,head_dim=128,t1=f32,layout=") + layout);
    static const std::int64_t seqstarts[] = {0, 0}, kvstarts[] = {0, kTokens};
    kvjit::Batch batch;
    batch.num_heads = kHeads;
    batch.num_layers = kLayers;
    if (cachestarts.rank == 1) batch.max_tokens = kTokens;
    if (cachestarts.rank == 2) batch.num_blocks = kBlocks;
    batch.set_seqstarts(seqstarts).set_kvstarts(kvstarts);
    batch.cachestarts = cachestarts;
    kvjit::PlanOptions options;
    options.stores_nothing = 1;
    return engine.kernel(spec.value())->plan(batch, options).value();
}

int main() try {
    auto engine = kvjit::Engine::create().value();

    // vLLM's blocks of all layers, (N, L, T, H, 2, D), of which a request has every other one.
    std::vector<float> blocks(kBlocks * kLayers * 16 * kHeads * 2 * kDim);
    for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<float>(i);
    std::vector<std::int64_t> block_table;
    for (std::int64_t page = 0; page < kTokens / 16; ++page) block_table.push_back((page * 7 + 3) % kBlocks);
    auto out = reader(engine, "vllm:BLNHC,page_size=16", kvjit::Tensor(block_table, {1, kTokens / 16}));

    std::vector<float> chunk(2 * kLayers * kTokens * kRow);
    kvjit::Tensors tensors;
    tensors.cache = kvjit::Tensor(blocks, {kBlocks, kLayers, 16, kHeads, 2, kDim});
    for (std::int64_t layer = 0; layer < kLayers; ++layer) {
        float* const keys = chunk.data() + layer * kTokens * kRow;
        tensors.key = kvjit::Tensor(keys, KVJIT_F32, {kTokens, kHeads, kDim});
        tensors.value = kvjit::Tensor(keys + kLayers * kTokens * kRow, KVJIT_F32, {kTokens, kHeads, kDim});
        out.run(tensors, layer).value();
    }

    // The chunk as a cache. Its last layer's last value is that of the last block's last token.
    const std::vector<std::int64_t> first_token{0};
    auto in = reader(engine, "lmcache:KV_2LTD", kvjit::Tensor(first_token));
    std::vector<float> key(kTokens * kRow), value(key.size());
    tensors.cache = kvjit::Tensor(chunk, {2, kLayers, kTokens, kHeads, kDim});
    tensors.key = kvjit::Tensor(key, {kTokens, kHeads, kDim});
    tensors.value = kvjit::Tensor(value, {kTokens, kHeads, kDim});
    in.run(tensors, kLayers - 1).value();
    const float expected = blocks[(block_table.back() + 1) * kLayers * 16 * kRow * 2 - 1];
    std::printf("the last value is %g in the chunk, %g in its block\n", value.back(), expected);
    return value.back() == expected ? 0 : 1;
} catch (const kvjit::Exception& refused) {
    return std::fprintf(stderr, "%s\n", refused.what()), 1;
}
