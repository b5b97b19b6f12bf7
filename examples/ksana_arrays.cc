// A decode step by the index arrays that KsanaLLM makes for Ascend ATB, ids and slots of each layer's own: one plan
// serves all layers.
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "kvjit/interop/ksana.h"

namespace interop = kvjit::interop;

constexpr std::int32_t kLayers = 2, kBlockTokens = 16, kColumns = 19;  // blocks of the longest request

int main() try {
    auto spec =
        kvjit::KernelSpec::parse(
            std::string("op=MultiHeadCacheAttention,head_dim=128,group=4,t1=f32,layout=ksana:pool,page_size=16,") +
            interop::kKsanaSpecFields)
            .value();
    auto pool = interop::KsanaPool::allocate(spec, {kLayers, 2}, 20).value();
    std::memset(pool.codes(), 0, pool.block_bytes() * 20);  // the past is zeros here

    // Two requests of 300 and 5 keys, each of which brings one new one, and their blocks.
    const std::vector<std::int32_t> seqstarts{0, 1, 2}, seq_len_host{300, 5};
    std::vector<std::int32_t> blocks(2 * kColumns, -1);
    for (std::int32_t i = 0; i < kColumns; ++i) blocks[i] = 18 - i;
    blocks[kColumns] = 19;
    // As KsanaLLM makes them of a layer: ATB's ids, and slots id * block_tokens + token.
    std::vector<std::int32_t> layers_block_table(kLayers * 2 * kColumns), layers_slot_mapping;
    const interop::KsanaTable<std::int32_t> table(blocks.data(), 2, kColumns);
    for (std::int64_t layer = 0; layer < kLayers; ++layer) {
        std::int32_t* const ids = &layers_block_table[layer * 2 * kColumns];
        interop::to_atb(pool, table, layer, interop::KsanaTable<std::int32_t>(ids, 2, kColumns)).value();
        layers_slot_mapping.push_back(ids[299 / kBlockTokens] * kBlockTokens + 299 % kBlockTokens);
        layers_slot_mapping.push_back(ids[kColumns] * kBlockTokens + 4);
    }
    interop::KsanaArrays arrays;
    arrays.batch_size = arrays.num_tokens = 2;
    arrays.max_num_blocks_per_query = kColumns;
    arrays.seqstarts = seqstarts.data();
    arrays.seq_len_host = seq_len_host.data();
    arrays.layers_slot_mapping = layers_slot_mapping.data();
    arrays.layers_block_table = layers_block_table.data();

    auto engine = kvjit::Engine::create().value();
    auto kernel = engine.kernel(pool.spec(interop::KsanaView::kAtb).value()).value();
    auto plan = kernel.plan(arrays.batch(pool)).value();

    std::vector<float> query(2 * 8 * 128, 0.1f), key(2 * 2 * 128, 0.2f), value(2 * 2 * 128, 0.3f), output(2 * 8 * 128);
    kvjit::Tensors tensors;
    tensors.query = kvjit::Tensor(query, {2, 8, 128});
    tensors.current_key = kvjit::Tensor(key, {2, 2, 128});
    tensors.current_value = kvjit::Tensor(value, {2, 2, 128});
    tensors.attn_output = kvjit::Tensor(output, {2, 8, 128});
    pool.set_tensors(interop::KsanaView::kAtb, tensors).value();
    for (std::int64_t layer = 0; layer < kLayers; ++layer) {
        plan.run(tensors, layer).value();
    }
    std::printf("attn_output[0, 0, 0] = %g, attn_output[1, 0, 0] = %g\n", output[0], output[8 * 128]);
} catch (const kvjit::Exception& refused) {
    return std::fprintf(stderr, "%s\n", refused.what()), 1;
}
