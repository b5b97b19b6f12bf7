// Two requests share a prefix of 20 tokens, whose last block is not full. Before the second one writes its next token
// there, it gets a copy of that block: of all layers, keys and values, in one call for all requests of a step.
#include <cstdint>
#include <cstdio>
#include <vector>

#include "kvjit/blocks.hpp"

constexpr std::int64_t kBlocks = 8, kLayers = 2, kHeads = 4, kBlockTokens = 16, kDim = 64;
constexpr std::size_t kBlock = kLayers * 2 * kHeads * kBlockTokens * kDim;

int main() try {
    // TensorRT-LLM's pool; any layout will do.
    const auto spec =
        kvjit::KernelSpec::parse("op=KeyValueCache,head_dim=64,t1=f32,layout=trtllm:pool,page_size=16").value();
    std::vector<float> pool(kBlocks * kBlock);
    kvjit::Batch batch;  // of which only the cache's extents count
    batch.num_kv_heads = kHeads;
    batch.num_layers = kLayers;
    batch.num_blocks = kBlocks;
    kvjit::Tensors tensors;
    tensors.cache = kvjit::Tensor(pool, {kBlocks, kLayers, 2, kHeads, kBlockTokens, kDim});
    const kvjit::Blocks blocks(spec, batch, tensors);

    std::vector<std::int64_t> first{5, 7}, second{5, 7};  // block tables
    for (std::size_t i = 0; i < kBlock; ++i) pool[7 * kBlock + i] = static_cast<float>(i);

    const std::vector<std::int64_t> shared{7}, own{2};
    kvjit::copy_blocks(blocks, blocks, shared.data(), own.data(), 1).value();
    second[1] = own[0];
    pool[2 * kBlock] = -1;  // the second request's next token

    int differ = 0;
    for (std::size_t i = 0; i < kBlock; ++i) differ += pool[2 * kBlock + i] != pool[7 * kBlock + i];
    std::printf("tables %d %d and %d %d; elements that differ: %d, the new token's first\n", static_cast<int>(first[0]),
                static_cast<int>(first[1]), static_cast<int>(second[0]), static_cast<int>(second[1]), differ);
} catch (const kvjit::Exception& refused) {
    return std::fprintf(stderr, "%s\n", refused.what()), 1;
}
