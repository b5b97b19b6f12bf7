// One decode step over a paged int8 cache: 8 query heads over 2 kv heads of 128, one sequence of 300 tokens.
#include <cstdio>
#include <vector>

#include "kvjit/kvjit.hpp"

int main() try {
    const auto engine = kvjit::Engine::create().value();
    const auto spec = kvjit::KernelSpec::parse(
        "op=MultiHeadCacheAttention,head_dim=128,group=4,t1=f32,quant_bit=8,cache_mode=page_table,layout=L2HTD");
    const auto kernel = engine.kernel(spec.value()).value();  // a handle; nothing is compiled yet

    const std::vector<std::int64_t> seqstarts{0, 1}, kvlens{300}, pages{384, 0, 128};  // first slots of pages of 128
    kvjit::Batch batch;
    batch.num_heads = 8;
    batch.max_tokens = 512;
    batch.set_seqstarts(seqstarts).set_kvlens(kvlens).set_cachestarts(pages, {1, 3});
    auto plan = kernel.plan(batch).value();  // checks, splits, and compiles what neither memory nor disk holds
    // The plan is of these lengths and pages: leave the arrays as they are until its last run, and plan each step anew.

    std::vector<float> query(8 * 128, 0.1f), key(2 * 128, 0.2f), value(2 * 128, 0.3f), output(8 * 128);
    std::vector<std::int8_t> cache(2 * 2 * 512 * 128);  // (L 1, key|value, head, token, D); the past is zeros here
    std::vector<float> scale(cache.size() / 8, 0.01f);  // one scale for 8 elements
    kvjit::Tensors tensors;
    tensors.query = kvjit::Tensor(query, {1, 8, 128});
    tensors.current_key = kvjit::Tensor(key, {1, 2, 128});
    tensors.current_value = kvjit::Tensor(value, {1, 2, 128});
    tensors.cache = kvjit::Tensor(cache, {1, 2, 2, 512, 128});
    tensors.scale = kvjit::Tensor(scale, {1, 2, 2, 512, 16});
    tensors.attn_output = kvjit::Tensor(output, {1, 8, 128});
    plan.run(tensors).value();
    std::printf("attn_output[0, 0, 0] = %g\n", output[0]);
} catch (const kvjit::Exception& refused) {
    return std::fprintf(stderr, "%s\n", refused.what()), 1;
}
