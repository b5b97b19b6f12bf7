// Two requests share the blocks of a prefix: it is stored once, and both tables begin with its blocks. Each request
// stores its new token in a block of its own. What it reads may be shared with anybody, what it writes with nobody.
#include <cstdint>
#include <cstdio>
#include <vector>

#include "kvjit/kvjit.hpp"

constexpr std::int64_t kHeads = 8, kKvHeads = 2, kDim = 64, kBlocks = 4, kBlockTokens = 16, kPrefix = 2 * kBlockTokens;

using Starts = std::vector<std::int64_t>;

/// The tokens from seqstarts, as the last of the keys from kvlens.
kvjit::Batch batch_of(const Starts& seqstarts, const Starts& kvlens, const Starts& block_tables) {
    kvjit::Batch batch;
    batch.set_seqstarts(seqstarts).set_kvlens(kvlens);
    batch.num_kv_heads = kKvHeads;
    batch.num_blocks = kBlocks;
    const auto rows = static_cast<std::int64_t>(kvlens.size());
    batch.set_cachestarts(block_tables, {rows, static_cast<std::int64_t>(block_tables.size()) / rows});
    return batch;
}

int main() try {
    const auto engine = kvjit::Engine::create().value();
    const auto attention = kvjit::KernelSpec::parse(
                               "op=MultiHeadCacheAttention,head_dim=64,group=4,t1=f32,"
                               "cache_mode=block_table,page_size=16,layout=N2HTD")
                               .value();
    std::vector<float> cache(kBlocks * 2 * kKvHeads * kBlockTokens * kDim);
    kvjit::Tensors tensors;
    tensors.cache = kvjit::Tensor(cache, {kBlocks, 2, kKvHeads, kBlockTokens, kDim});

    // The prefix, into blocks 0 and 1. KeyValueCache alone: nobody asks for its attention.
    const Starts prefix_starts{0, kPrefix}, prefix_lengths{kPrefix}, prefix_blocks{0, 1};
    std::vector<float> keys(kPrefix * kKvHeads * kDim, 0.5f), values(keys.size(), 1.0f);
    tensors.current_key = kvjit::Tensor(keys, {kPrefix, kKvHeads, kDim});
    tensors.current_value = kvjit::Tensor(values, {kPrefix, kKvHeads, kDim});
    const auto storing = engine.kernel(attention.for_op(KVJIT_OP_KEY_VALUE_CACHE).value()).value();
    storing.plan(batch_of(prefix_starts, prefix_lengths, prefix_blocks)).value().run(tensors).value();

    // A token of each request, after the prefix: into block 2 of the first, into block 3 of the second.
    const Starts starts{0, 1, 2}, lengths{kPrefix + 1, kPrefix + 1}, block_tables{0, 1, 2, 0, 1, 3};
    std::vector<float> query(2 * kHeads * kDim, 0.1f), output(query.size());
    std::vector<float> key(2 * kKvHeads * kDim, 0.5f), value(key.size(), 2.0f);
    for (std::size_t i = value.size() / 2; i < value.size(); ++i) value[i] = 5.0f;
    tensors.query = kvjit::Tensor(query, {2, kHeads, kDim});
    tensors.current_key = kvjit::Tensor(key, {2, kKvHeads, kDim});
    tensors.current_value = kvjit::Tensor(value, {2, kKvHeads, kDim});
    tensors.attn_output = kvjit::Tensor(output, {2, kHeads, kDim});
    engine.kernel(attention).value().plan(batch_of(starts, lengths, block_tables)).value().run(tensors).value();

    // All keys are alike, so outputs are means: (32 * 1 + 2) / 33 and (32 * 1 + 5) / 33.
    std::printf("output[0] = %g, output[1] = %g, blocks: 4 instead of 6\n", output[0], output[kHeads * kDim]);
} catch (const kvjit::Exception& refused) {
    return std::fprintf(stderr, "%s\n", refused.what()), 1;
}
