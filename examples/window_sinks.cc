// A sliding window and attention sinks, as gpt-oss has them. Both are fields of the spec; how far the window goes is a
// number of the batch, and each layer has sinks of its own. Pages before the window are given back: -1 stands there.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "kvjit/kvjit.hpp"

constexpr std::int64_t kHeads = 8, kKvHeads = 1, kDim = 64, kPages = 3, kPageTokens = 4, kKeys = 10;

int main() try {
    const auto engine = kvjit::Engine::create().value();
    const auto spec = kvjit::KernelSpec::parse(
                          "op=MultiHeadCacheAttention,head_dim=64,group=8,t1=f32,has_window=1,"
                          "has_sinks=1,cache_mode=page_table,page_size=4,layout=L2HTD")
                          .value();

    // Ten keys, 0 all of them, with values 0 to 9. Of pages 0 to 3, 4 to 7 and 8 to 11 a window of 4 needs the last
    // two.
    std::vector<float> cache(2 * kPages * kPageTokens * kDim);
    float* const values = &cache[kPages * kPageTokens * kDim];
    for (std::int64_t t = 0; t < kKeys; ++t) {
        for (std::int64_t d = 0; d < kDim; ++d) values[t * kDim + d] = static_cast<float>(t);
    }
    const std::vector<std::int64_t> seqstarts{0, 1}, kvlens{kKeys}, pages{-1, 4, 8};
    kvjit::Batch batch;
    batch.set_seqstarts(seqstarts).set_kvlens(kvlens);
    batch.num_kv_heads = kKvHeads;
    batch.max_tokens = kPages * kPageTokens;
    batch.decoding_batches = 1;
    batch.set_cachestarts(pages, {1, kPages});
    batch.window_left = 3;  // beside itself: what others call a window of 4
    auto plan = engine.kernel(spec).value().plan(batch).value();

    std::vector<float> query(kHeads * kDim, 0.1f), output(query.size()), key(kDim), value(kDim, 9.0f);
    const std::vector<float> sinks(kHeads, std::log(4.0f));
    kvjit::Tensors tensors;
    tensors.cache = kvjit::Tensor(cache, {1, 2, kKvHeads, kPages * kPageTokens, kDim});
    tensors.query = kvjit::Tensor(query, {1, kHeads, kDim});
    tensors.current_key = kvjit::Tensor(key, {1, kKvHeads, kDim});
    tensors.current_value = kvjit::Tensor(value, {1, kKvHeads, kDim});
    tensors.sinks = kvjit::Tensor(sinks);
    tensors.attn_output = kvjit::Tensor(output, {1, kHeads, kDim});
    plan.run(tensors).value();
    // Four keys of score 0 and a sink of weight 4: (6 + 7 + 8 + 9) / (4 + 4).
    std::printf("output[0] = %g\n", output[0]);
} catch (const kvjit::Exception& refused) {
    return std::fprintf(stderr, "%s\n", refused.what()), 1;
}
