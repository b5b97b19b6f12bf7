// PMX's static batches, as in docs/semantics.md, section 10: a prompt of all sequences, then tokens one by one, over a
// cache (L, MaxB, 2, Hkv, MaxS, D) that grows when it is full. Growing compiles nothing.
#include <cstdio>
#include <cstring>
#include <vector>

#include "kvjit/kvjit.hpp"

constexpr std::int64_t kBatch = 2, kHeads = 8, kKvHeads = 2, kDim = 128, kPlanes = kBatch * 2 * kKvHeads;  // one layer

struct Cache {
    std::int64_t room;  // MaxS
    std::vector<float> memory = std::vector<float>(kPlanes * room * kDim);

    Cache larger(std::int64_t more) const {
        Cache grown{more};
        for (std::int64_t plane = 0; plane < kPlanes; ++plane)
            std::memcpy(&grown.memory[plane * more * kDim], &memory[plane * room * kDim], room * kDim * sizeof(float));
        return grown;
    }
};

/// MultiHeadCacheAttention of `tokens` new tokens of each sequence at the scalar start_pos. Returns attn_output's last
/// element.
kvjit::Result<float> attend(const kvjit::Kernel& kernel, Cache& cache, std::int64_t start_pos, std::int64_t tokens) {
    std::vector<std::int64_t> seqstarts, cachestarts, kvlens(kBatch, start_pos + tokens);
    for (std::int64_t b = 0; b <= kBatch; ++b) seqstarts.push_back(b * tokens);
    for (std::int64_t b = 0; b < kBatch; ++b) cachestarts.push_back(b);
    kvjit::Batch batch;
    batch.num_blocks = kBatch;
    batch.num_heads = kHeads;
    batch.max_tokens = cache.room;
    batch.set_seqstarts(seqstarts).set_kvlens(kvlens).set_cachestarts(cachestarts);
    auto plan = kernel.plan(batch);
    if (!plan) return plan.error();

    const std::int64_t rows = kBatch * tokens;  // (B, S, H, D) is (B * S, H, D)
    std::vector<float> query(rows * kHeads * kDim, 0.1f), output(query.size());
    std::vector<float> key(rows * kKvHeads * kDim, 0.2f), value(key.size(), static_cast<float>(start_pos));
    kvjit::Tensors tensors;
    tensors.query = kvjit::Tensor(query, {rows, kHeads, kDim});
    tensors.current_key = kvjit::Tensor(key, {rows, kKvHeads, kDim});
    tensors.current_value = kvjit::Tensor(value, {rows, kKvHeads, kDim});
    tensors.cache = kvjit::Tensor(cache.memory, {1, kBatch, 2, kKvHeads, cache.room, kDim});
    tensors.attn_output = kvjit::Tensor(output, {rows, kHeads, kDim});
    if (auto done = plan->run(tensors); !done) return done.error();
    return output.back();
}

int main() try {
    auto engine = kvjit::Engine::create().value();
    auto spec =
        kvjit::KernelSpec::parse("op=MultiHeadCacheAttention,head_dim=128,group=4,t1=f32,layout=pmx:static:LN2HTD")
            .value();
    auto kernel = engine.kernel(spec).value();
    kernel.prepare().value();
    engine.seal();  // what is compiled from now on is late

    Cache cache{8};
    float last = 0;
    for (std::int64_t start_pos = 0, tokens = 5; start_pos < 20; start_pos += tokens, tokens = 1) {
        if (start_pos + tokens > cache.room) cache = cache.larger(2 * cache.room);
        last = attend(kernel, cache, start_pos, tokens).value();
    }
    // All keys are alike, so it is the mean of the values: 5 times 0, then 5, 6, ... 19.
    std::printf("attn_output[1, 0, 7, 127] = %g, late compiles: %d\n", last,
                static_cast<int>(engine.stats().late_compiles));
} catch (const kvjit::Exception& refused) {
    return std::fprintf(stderr, "%s\n", refused.what()), 1;
}
