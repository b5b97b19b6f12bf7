// A decode step on FlashInfer's paged cache in its layout HND and index arrays: pages of 16 tokens, two requests.
#include <cstdio>
#include <string>
#include <vector>

#include "kvjit/interop/flashinfer.h"

int main() try {
    using namespace kvjit::interop;
    auto engine = kvjit::Engine::create().value();
    auto spec = kvjit::KernelSpec::parse(
                    std::string("op=MultiHeadCacheAttention,head_dim=128,group=4,t1=f32,layout=N2HTD,page_size=16,") +
                    flashinfer::kSpecFields)
                    .value();
    auto kernel = engine.kernel(spec).value();

    // Two requests, with 299 and 4 tokens in the cache, and one new token each.
    const std::vector<std::int32_t> qo_indptr{0, 1, 2}, indptr{0, 19, 20}, last_page_len{300 - 18 * 16, 5};
    std::vector<std::int32_t> indices(20);
    for (std::int32_t page = 0; page < 20; ++page) indices[page] = 20 - page;
    flashinfer::Arrays arrays;
    arrays.batch_size = 2;
    arrays.qo_indptr = qo_indptr.data();
    arrays.paged_kv_indptr = indptr.data();
    arrays.paged_kv_indices = indices.data();
    arrays.nnz = 20;
    arrays.paged_kv_last_page_len = last_page_len.data();
    arrays.num_pages = 24;
    auto plan = kernel.plan(arrays.batch(8)).value();

    std::vector<float> query(2 * 8 * 128, 0.1f), key(2 * 2 * 128, 0.2f), value(2 * 2 * 128, 0.3f), output(2 * 8 * 128);
    std::vector<float> cache(24 * 2 * 2 * 16 * 128);  // (page, key|value, head, token, D); the past is zeros here
    kvjit::Tensors tensors;
    tensors.query = kvjit::Tensor(query, {2, 8, 128});
    tensors.current_key = kvjit::Tensor(key, {2, 2, 128});
    tensors.current_value = kvjit::Tensor(value, {2, 2, 128});
    tensors.cache = kvjit::Tensor(cache, {24, 2, 2, 16, 128});
    tensors.attn_output = kvjit::Tensor(output, {2, 8, 128});
    plan.run(tensors).value();
    std::printf("attn_output[0, 0, 0] = %g, attn_output[1, 0, 0] = %g\n", output[0], output[8 * 128]);
} catch (const kvjit::Exception& refused) {
    return std::fprintf(stderr, "%s\n", refused.what()), 1;
}
