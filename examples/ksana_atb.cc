// One cache, two worlds: kvjit stores keys and values into KsanaLLM's blocks by their addresses, and a loop that knows
// only Ascend ATB's convention reads them from kcache and vcache. Nothing is copied between the two.
#include <cstdio>
#include <vector>

#include "kvjit/interop/ksana.h"

constexpr std::int64_t kLayers = 2, kHeads = 4, kDim = 64, kBlockTokens = 16, kLayer = 1, kTokens = 20;

namespace interop = kvjit::interop;

int main() try {
    auto spec = kvjit::KernelSpec::parse("op=KeyValueCache,head_dim=64,t1=f32,layout=ksana,page_size=16").value();
    // Eight blocks of (2, L, block_tokens, Hkv, D) in one region. KsanaPool::wrap does the same over the engine's own.
    auto pool = interop::KsanaPool::allocate(spec, {kLayers, kHeads}, 8).value();
    std::int64_t blocks[2];  // for 20 tokens
    pool.take(blocks, 2).value();

    // KsanaLLM's view: a table of addresses, a row for each sequence.
    std::int64_t addresses[2];
    const interop::KsanaTable<std::int64_t> row(blocks, 1, 2);
    interop::to_pointers(pool, row, interop::KsanaTable<std::int64_t>(addresses, 1, 2)).value();
    const std::int64_t starts[] = {0, kTokens};
    kvjit::Batch batch;
    batch.set_seqstarts(starts).set_kvstarts(starts).set_cachestarts(addresses, {1, 2});
    pool.set_extents(interop::KsanaView::kPointers, batch);

    std::vector<float> key(kTokens * kHeads * kDim), value(key.size());
    for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<float>(i), value[i] = -static_cast<float>(i);
    kvjit::Tensors tensors;
    tensors.current_key = kvjit::Tensor(key, {kTokens, kHeads, kDim});
    tensors.current_value = kvjit::Tensor(value, {kTokens, kHeads, kDim});

    auto engine = kvjit::Engine::create().value();
    auto kernel = engine.kernel(pool.spec(interop::KsanaView::kPointers).value()).value();
    auto plan = kernel.plan(batch).value();
    plan.run(tensors, kLayer).value();

    // ATB's view of the same bytes: two base pointers, and ids for one layer.
    auto caches = pool.atb_caches().value();
    std::int32_t ids[2];
    interop::to_atb(pool, row, kLayer, interop::KsanaTable<std::int32_t>(ids, 1, 2)).value();
    int wrong = 0;
    for (std::int64_t t = 0; t < kTokens; ++t) {
        const std::int64_t slot = ids[t / kBlockTokens] * kBlockTokens + t % kBlockTokens;  // as ATB finds a token
        for (std::int64_t i = 0; i < kHeads * kDim; ++i) {
            wrong += static_cast<float*>(caches.kcache)[slot * kHeads * kDim + i] != key[t * kHeads * kDim + i];
            wrong += static_cast<float*>(caches.vcache)[slot * kHeads * kDim + i] != value[t * kHeads * kDim + i];
        }
    }
    std::printf("blocks %d, %d are ATB's %d, %d; elements that differ: %d\n", static_cast<int>(blocks[0]),
                static_cast<int>(blocks[1]), ids[0], ids[1], wrong);
    return wrong == 0 ? 0 : 1;
} catch (const kvjit::Exception& refused) {
    return std::fprintf(stderr, "%s\n", refused.what()), 1;
}
