// One decode step over a paged int8 cache: 8 query heads over 2 kv heads of 128, one sequence of 300 tokens.
#include <cstdio>
#include <vector>

#include "kvjit/kvjit.hpp"

int fail(const kvjit::Error& error) {
    return std::fprintf(stderr, "%s\n", error.message()), 1;
}

int main() {
    auto engine = kvjit::Engine::create();
    if (!engine) return fail(engine.error());
    auto spec = kvjit::KernelSpec::parse(
        "op=MultiHeadCacheAttention,head_dim=128,group=4,t1=f32,quant_bit=8,cache_mode=page_table,layout=L2HTD");
    if (!spec) return fail(spec.error());
    auto kernel = engine->kernel(*spec);  // a handle; nothing is compiled yet
    if (!kernel) return fail(kernel.error());

    const std::vector<std::int64_t> pages{384, 0, 128};  // a page is 128 tokens of the cache, wherever they lie
    const std::vector<std::int64_t> seqstarts{0, 1}, kvstarts{0, 300}, start_pos{299};
    kvjit::Batch batch;
    batch.batch_size = 1;
    batch.num_heads = 8;
    batch.num_kv_heads = 2;
    batch.max_tokens = 512;
    batch.decoding_batches = 1;
    batch.seqstarts = seqstarts.data();
    batch.kvstarts = kvstarts.data();
    batch.start_pos = start_pos.data();
    batch.cachestarts = kvjit::Tensor(pages.data(), KVJIT_I64, {1, 3});
    auto plan = kernel->plan(batch);  // checks, splits, and compiles what neither memory nor disk holds
    if (!plan) return fail(plan.error());

    std::vector<float> query(8 * 128, 0.1f), key(2 * 128, 0.2f), value(2 * 128, 0.3f), output(8 * 128);
    std::vector<std::int8_t> cache(2 * 2 * 512 * 128);       // (L 1, key|value, head, token, D); the past is zeros here
    std::vector<float> scale(2 * 2 * 512 * 128 / 8, 0.01f);  // one scale for 8 elements
    kvjit::Tensors tensors;
    tensors.query = kvjit::Tensor(query.data(), KVJIT_F32, {1, 8, 128});
    tensors.current_key = kvjit::Tensor(key.data(), KVJIT_F32, {1, 2, 128});
    tensors.current_value = kvjit::Tensor(value.data(), KVJIT_F32, {1, 2, 128});
    tensors.cache = kvjit::Tensor(cache.data(), KVJIT_I8, {1, 2, 2, 512, 128});
    tensors.scale = kvjit::Tensor(scale.data(), KVJIT_F32, {1, 2, 2, 512, 16});
    tensors.attn_output = kvjit::Tensor(output.data(), KVJIT_F32, {1, 8, 128});
    if (auto done = plan->run(tensors); !done) return fail(done.error());
    std::printf("attn_output[0, 0, 0] = %g\n", output[0]);
}
