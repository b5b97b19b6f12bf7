// A request waits: its block goes out to a pool for such blocks, which has a layout of its own, another request gets
// the place, and later the block comes back to another one. All by layout alone: no kernel, no compiler.
#include <cstdint>
#include <cstdio>
#include <vector>

#include "kvjit/blocks.hpp"

constexpr std::int64_t kLayers = 2, kHeads = 4, kBlockTokens = 16, kDim = 64;
constexpr std::size_t kBlock = kLayers * 2 * kHeads * kBlockTokens * kDim;

/// A cache in blocks, and what kvjit has to know of it.
struct Pool {
    Pool(const char* fields, std::int64_t num_blocks, const std::vector<std::int64_t>& extents)
        : spec(kvjit::KernelSpec::parse(fields).value()), memory(static_cast<std::size_t>(num_blocks) * kBlock) {
        batch.num_kv_heads = kHeads;
        batch.num_layers = kLayers;
        batch.num_blocks = num_blocks;
        tensors.cache = kvjit::Tensor(memory, extents);
    }
    Pool(const Pool&) = delete;
    kvjit::Blocks blocks() const { return {spec, batch, tensors}; }

    kvjit::KernelSpec spec;
    std::vector<float> memory;
    kvjit::Batch batch;
    kvjit::Tensors tensors;
};

int main() try {
    // The engine's pool, (block, layer, key|value, head, token, D), and that of waiting blocks, (block, key|value,
    // layer, token, head, D).
    Pool pool("op=KeyValueCache,head_dim=64,t1=f32,layout=trtllm:pool,page_size=16", 8,
              {8, kLayers, 2, kHeads, kBlockTokens, kDim});
    Pool waiting("op=KeyValueCache,head_dim=64,t1=f32,layout=ksana:pool,page_size=16", 4,
                 {4, 2, kLayers, kBlockTokens, kHeads, kDim});
    for (std::size_t i = 0; i < kBlock; ++i) pool.memory[2 * kBlock + i] = static_cast<float>(i);

    const std::int64_t here[] = {2}, aside[] = {3}, back[] = {6};
    kvjit::copy_blocks(pool.blocks(), waiting.blocks(), here, aside, 1).value();
    kvjit::zero_blocks(pool.blocks(), here, 1).value();  // another request's now
    kvjit::copy_blocks(waiting.blocks(), pool.blocks(), aside, back, 1).value();

    int differ = 0;
    for (std::size_t i = 0; i < kBlock; ++i) {
        differ += pool.memory[2 * kBlock + i] != 0;
        differ += pool.memory[6 * kBlock + i] != static_cast<float>(i);
    }
    std::printf("block 2 is block 6 now; elements that differ: %d\n", differ);
    return differ == 0 ? 0 : 1;
} catch (const kvjit::Exception& refused) {
    return std::fprintf(stderr, "%s\n", refused.what()), 1;
}
