// A decode step on SGLang's pools: slots of single tokens by a row for each request, keys and values in two tensors.
#include <cstdio>
#include <string>
#include <vector>

#include "kvjit/interop/sglang.h"

int main() try {
    using namespace kvjit::interop;
    auto engine = kvjit::Engine::create().value();
    auto spec =
        kvjit::KernelSpec::parse(std::string("op=MultiHeadCacheAttention,head_dim=128,group=4,t1=f32,layout=THD,") +
                                 sglang::kSpecFields + ",starts_type=i64")
            .value();
    auto kernel = engine.kernel(spec).value();

    // Two requests, with 299 and 4 tokens in the cache, and one new token each.
    const std::vector<std::int64_t> qo_indptr{0, 1, 2}, seq_lens{300, 5}, req_pool_indices{3, 1};
    std::vector<std::int32_t> req_to_token(4 * 512, -1);
    for (std::int32_t t = 0; t < 300; ++t) req_to_token[3 * 512 + t] = 399 - t;
    for (std::int32_t t = 0; t < 5; ++t) req_to_token[1 * 512 + t] = 10 * t;
    const std::vector<std::int64_t> out_cache_loc{399 - 299, 40};
    sglang::Arrays<std::int64_t> arrays;
    arrays.batch_size = arrays.num_tokens = 2;
    arrays.qo_indptr = qo_indptr.data();
    arrays.seq_lens = seq_lens.data();
    arrays.req_pool_indices = req_pool_indices.data();
    arrays.req_to_token = req_to_token.data();
    arrays.requests = 4;
    arrays.max_context_len = 512;
    arrays.out_cache_loc = out_cache_loc.data();
    arrays.slots = 400;
    auto plan = kernel.plan(arrays.batch(8)).value();

    std::vector<float> query(2 * 8 * 128, 0.1f), key(2 * 2 * 128, 0.2f), value(2 * 2 * 128, 0.3f), output(2 * 8 * 128);
    std::vector<float> keys(400 * 2 * 128), values(400 * 2 * 128);  // (slot, head, D); the past is zeros here
    kvjit::Tensors tensors;
    tensors.query = kvjit::Tensor(query, {2, 8, 128});
    tensors.current_key = kvjit::Tensor(key, {2, 2, 128});
    tensors.current_value = kvjit::Tensor(value, {2, 2, 128});
    tensors.key_cache = kvjit::Tensor(keys, {400, 2, 128});
    tensors.value_cache = kvjit::Tensor(values, {400, 2, 128});
    tensors.attn_output = kvjit::Tensor(output, {2, 8, 128});
    plan.run(tensors).value();
    std::printf("attn_output[0, 0, 0] = %g, attn_output[1, 0, 0] = %g\n", output[0], output[8 * 128]);
} catch (const kvjit::Exception& refused) {
    return std::fprintf(stderr, "%s\n", refused.what()), 1;
}
