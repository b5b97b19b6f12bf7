// Attention whose keys lie on two ranks: each attends to its own, with the logarithm of its sum of exponentials beside
// the output, and Merge makes of both what one attention to all keys would give. Here both ranks are this process.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "kvjit/kvjit.hpp"

constexpr std::int64_t kHeads = 8, kKvHeads = 2, kDim = 64, kKeys = 100, kOfFirst = 70;

/// Attends to `count` keys of the sequence from key `first` on.
void attend(const kvjit::Kernel& kernel, const std::vector<float>& query, const std::vector<float>& keys,
            const std::vector<float>& values, std::int64_t first, std::int64_t count, float* output, float* lse) {
    const std::vector<std::int64_t> seqstarts{0, 1}, kvstarts{0, count};
    kvjit::Batch batch;
    batch.set_seqstarts(seqstarts).set_kvstarts(kvstarts);
    batch.num_kv_heads = kKvHeads;
    batch.decoding_batches = 1;
    kvjit::Tensors tensors;
    tensors.query = kvjit::Tensor(query, {1, kHeads, kDim});
    tensors.key = kvjit::Tensor(keys.data() + first * kKvHeads * kDim, KVJIT_F32, {count, kKvHeads, kDim});
    tensors.value = kvjit::Tensor(values.data() + first * kKvHeads * kDim, KVJIT_F32, {count, kKvHeads, kDim});
    tensors.attn_output = kvjit::Tensor(output, KVJIT_F32, {1, kHeads, kDim});
    if (lse != nullptr) tensors.lse = kvjit::Tensor(lse, KVJIT_F32, {1, kHeads});
    kernel.plan(batch).value().run(tensors).value();
}

int main() try {
    const auto engine = kvjit::Engine::create().value();
    const auto attention = kvjit::KernelSpec::parse("op=MultiHeadAttention,head_dim=64,group=4,t1=f32").value();
    const auto kernel = engine.kernel(attention).value();
    std::vector<float> query(kHeads * kDim), keys(kKeys * kKvHeads * kDim), values(keys.size());
    for (std::size_t i = 0; i < query.size(); ++i) query[i] = std::sin(static_cast<float>(i));
    for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = std::sin(0.7f * static_cast<float>(i));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::cos(0.3f * static_cast<float>(i));

    // (part, row, head, D) and (part, row, head): each rank sends its part, 65 numbers a head.
    std::vector<float> partial_output(2 * query.size()), partial_lse(2 * kHeads), merged(query.size()), whole(merged);
    attend(kernel, query, keys, values, 0, kOfFirst, partial_output.data(), partial_lse.data());
    attend(kernel, query, keys, values, kOfFirst, kKeys - kOfFirst, &partial_output[query.size()],
           &partial_lse[kHeads]);

    const std::vector<std::int64_t> seqstarts{0, 1};
    kvjit::Batch batch;
    batch.set_seqstarts(seqstarts);
    batch.num_heads = kHeads;
    kvjit::Tensors tensors;
    tensors.partial_output = kvjit::Tensor(partial_output, {2, 1, kHeads, kDim});
    tensors.partial_lse = kvjit::Tensor(partial_lse, {2, 1, kHeads});
    tensors.attn_output = kvjit::Tensor(merged, {1, kHeads, kDim});
    const auto merge = attention.for_op(KVJIT_OP_MERGE).value();
    engine.kernel(merge).value().plan(batch).value().run(tensors).value();

    attend(kernel, query, keys, values, 0, kKeys, whole.data(), nullptr);
    float difference = 0;
    for (std::size_t i = 0; i < whole.size(); ++i) difference = std::fmax(difference, std::fabs(merged[i] - whole[i]));
    std::printf("merged[0] = %g; %s one attention to all keys\n", merged[0], difference < 1e-6f ? "as" : "not as");
} catch (const kvjit::Exception& refused) {
    return std::fprintf(stderr, "%s\n", refused.what()), 1;
}
