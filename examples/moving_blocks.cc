// Blocks moved as they are. Two requests share a prefix of 20 tokens, whose last block is not full: before the second
// request writes there, it gets a copy of its own. Later it waits: its block goes out to a pool of another layout, and
// comes back to another place.
#include <cstdint>
#include <cstdio>
#include <vector>

#include "kvjit/blocks.hpp"

constexpr std::int64_t kLayers = 2, kHeads = 4, kDim = 64, kBlockTokens = 16;

/// The engine's pool, (block, layer, key|value, head, token, D); or the one for blocks that wait, (block, key|value,
/// layer, token, head, D).
struct Pool {
    Pool(const char* fields, std::int64_t num_blocks, const std::vector<std::int64_t>& shape)
        : spec(*kvjit::KernelSpec::parse(fields)),
          memory(static_cast<std::size_t>(num_blocks * 2 * kLayers * kHeads * kBlockTokens * kDim)) {
        batch.num_kv_heads = kHeads;
        batch.num_layers = kLayers;
        batch.num_blocks = num_blocks;
        tensors.cache = kvjit::Tensor(memory, shape);
    }
    Pool(const Pool&) = delete;
    kvjit::Blocks blocks() const { return {spec, batch, tensors}; }

    kvjit::KernelSpec spec;
    std::vector<float> memory;
    kvjit::Batch batch;
    kvjit::Tensors tensors;
};

int main() try {
    Pool pool("op=KeyValueCache,head_dim=64,t1=f32,layout=trtllm:pool,page_size=16", 8,
              {8, kLayers, 2, kHeads, kBlockTokens, kDim});
    Pool waiting("op=KeyValueCache,head_dim=64,t1=f32,layout=ksana:pool,page_size=16", 4,
                 {4, 2, kLayers, kBlockTokens, kHeads, kDim});
    std::vector<std::int64_t> first{5, 7}, second{5, 7};  // block tables: the prefix is shared
    const std::size_t block = pool.memory.size() / 8;
    for (std::size_t i = 0; i < block; ++i) pool.memory[7 * block + i] = static_cast<float>(i);

    // Copy on write: one call for all requests and layers of a step.
    const std::int64_t shared[] = {7}, own[] = {2};
    kvjit::copy_blocks(pool.blocks(), pool.blocks(), shared, own, 1).value();
    second[1] = own[0];
    pool.memory[2 * block] = -1;  // the second request's next token

    // It waits, and another request gets its block, with zeros in it.
    const std::int64_t slot[] = {3}, back[] = {6};
    kvjit::copy_blocks(pool.blocks(), waiting.blocks(), own, slot, 1).value();
    kvjit::zero_blocks(pool.blocks(), own, 1).value();
    kvjit::copy_blocks(waiting.blocks(), pool.blocks(), slot, back, 1).value();
    second[1] = back[0];

    int wrong = pool.memory[2 * block] != 0 || pool.memory[6 * block] != -1 || pool.memory[7 * block] != 0;
    for (std::size_t i = 1; i < block; ++i) wrong += pool.memory[6 * block + i] != static_cast<float>(i);
    std::printf("tables %d %d and %d %d; elements that differ: %d\n", static_cast<int>(first[0]),
                static_cast<int>(first[1]), static_cast<int>(second[0]), static_cast<int>(second[1]), wrong);
    return wrong == 0 ? 0 : 1;
} catch (const kvjit::Exception& refused) {
    return std::fprintf(stderr, "%s\n", refused.what()), 1;
}
