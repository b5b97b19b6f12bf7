// A decode step on vLLM's cache and index arrays: blocks of 16 tokens, two requests, 8 query heads over 2 kv heads.
#include <cstdio>
#include <string>
#include <vector>

#include "kvjit/interop/vllm.h"

int main() try {
    using namespace kvjit::interop;
    auto engine = kvjit::Engine::create().value();
    auto spec = kvjit::KernelSpec::parse(
                    std::string("op=MultiHeadCacheAttention,head_dim=128,group=4,t1=f32,layout=2NTHD,page_size=16,") +
                    vllm::kSpecFields)
                    .value();
    auto kernel = engine.kernel(spec).value();

    // Two requests, with 299 and 4 tokens in the cache, and one new token each.
    const std::vector<std::int32_t> query_start_loc{0, 1, 2}, seq_lens{300, 5};
    std::vector<std::int32_t> block_table(2 * 20, -1);
    for (std::int32_t page = 0; page < 19; ++page) block_table[page] = 20 - page;
    block_table[20] = 21;
    const std::vector<std::int64_t> slot_mapping{2 * 16 + 299 % 16, 21 * 16 + 4};  // block * 16 + offset
    vllm::Arrays arrays;
    arrays.num_reqs = arrays.num_tokens = 2;
    arrays.query_start_loc = query_start_loc.data();
    arrays.seq_lens = seq_lens.data();
    arrays.block_table = block_table.data();
    arrays.max_blocks = 20;
    arrays.slot_mapping = slot_mapping.data();
    arrays.num_blocks = 24;
    auto plan = kernel.plan(arrays.batch(8)).value();

    std::vector<float> query(2 * 8 * 128, 0.1f), key(2 * 2 * 128, 0.2f), value(2 * 2 * 128, 0.3f), output(2 * 8 * 128);
    std::vector<float> cache(2 * 24 * 16 * 2 * 128);  // (key|value, block, token, head, D); the past is zeros here
    kvjit::Tensors tensors;
    tensors.query = kvjit::Tensor(query, {2, 8, 128});
    tensors.current_key = kvjit::Tensor(key, {2, 2, 128});
    tensors.current_value = kvjit::Tensor(value, {2, 2, 128});
    tensors.cache = kvjit::Tensor(cache, {2, 24, 16, 2, 128});
    tensors.attn_output = kvjit::Tensor(output, {2, 8, 128});
    plan.run(tensors).value();
    std::printf("attn_output[0, 0, 0] = %g, attn_output[1, 0, 0] = %g\n", output[0], output[8 * 128]);
} catch (const kvjit::Exception& refused) {
    return std::fprintf(stderr, "%s\n", refused.what()), 1;
}
