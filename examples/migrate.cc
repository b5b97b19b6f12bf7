// A request moves from an engine that prefills to one that decodes: out of TensorRT-LLM's pool of float16 in blocks of
// 32 tokens, as int8 over the wire, into vLLM's blocks of 16 tokens. Neither engine knows the other's layout.
#include <cstdio>
#include <vector>

#include "kvjit/kvjit.hpp"

constexpr std::int64_t kLayers = 2, kHeads = 4, kDim = 64, kGroups = kDim / 8, kTokens = 50;

/// A side of a move: the request's 50 tokens in a cache of some format.
kvjit::Batch side_of(const kvjit::Tensor& table) {
    static const std::int64_t starts[] = {0, kTokens};
    kvjit::Batch batch;
    batch.num_kv_heads = kHeads;
    batch.num_layers = kLayers;
    batch.set_seqstarts(starts).set_kvstarts(starts);  // all of its tokens are copied
    batch.cachestarts = table;
    return batch;
}

/// Copies what the first spec describes to what the second one does.
void move(const kvjit::Engine& engine, const kvjit::KernelSpec& from, const kvjit::KernelSpec& to,
          const kvjit::Relayout& tokens, const kvjit::Tensors& source, const kvjit::Tensors& destination) {
    const auto kernel = engine.kernel(kvjit::KernelSpec::relayout(from, to).value()).value();
    kernel.plan(tokens).value().relayout(source, destination).value();
}

int main() try {
    auto engine = kvjit::Engine::create().value();
    auto prefill = kvjit::KernelSpec::parse("op=KeyValueCache,head_dim=64,layout=trtllm:pool,page_size=32").value();
    auto wire = kvjit::KernelSpec::parse("op=KeyValueCache,head_dim=64,layout=lmcache:KV_2LTD,quant_bit=8").value();
    auto decode =
        kvjit::KernelSpec::parse("op=KeyValueCache,head_dim=64,layout=vllm:LBNHC,page_size=16,quant_bit=8").value();

    // Eight blocks of each engine, and a buffer for the request alone.
    const std::int64_t prefill_blocks[] = {3, 1}, decode_blocks[] = {7, 2, 5, 0}, begin[] = {0};
    std::vector<kvjit::half> pool(8 * kLayers * 2 * kHeads * 32 * kDim, kvjit::half(0.75f));
    std::vector<std::int8_t> sent(2 * kLayers * kTokens * kHeads * kDim), codes(kLayers * 8 * 16 * kHeads * 2 * kDim);
    std::vector<kvjit::half> sent_scales(sent.size() / 8), scales(codes.size() / 8);

    kvjit::Batch in_pool = side_of({prefill_blocks, {1, 2}}), on_wire = side_of({begin, {1}}),
                 in_blocks = side_of({decode_blocks, {1, 4}});
    in_pool.num_blocks = in_blocks.num_blocks = 8;
    on_wire.max_tokens = kTokens;
    kvjit::Tensors pool_tensors, wire_tensors, block_tensors;
    pool_tensors.cache = kvjit::Tensor(pool, {8, kLayers, 2, kHeads, 32, kDim});
    wire_tensors.cache = kvjit::Tensor(sent, {2, kLayers, kTokens, kHeads, kDim});
    wire_tensors.scale = kvjit::Tensor(sent_scales, {2, kLayers, kTokens, kHeads, kGroups});
    block_tensors.cache = kvjit::Tensor(codes, {kLayers, 8, 16, kHeads, 2, kDim});
    block_tensors.scale = kvjit::Tensor(scales, {kLayers, 8, 16, kHeads, 2, kGroups});

    move(engine, prefill, wire, {in_pool, on_wire}, pool_tensors, wire_tensors);
    move(engine, wire, decode, {on_wire, in_blocks}, wire_tensors, block_tensors);

    // Of the last token, number 49: token 1 of block 0. 0.75 is 127 times its scale.
    const std::int64_t row = (((1 * 8 + 0) * 16 + 1) * kHeads + 3) * 2 + 1;  // of layer 1, head 3, its value
    std::int64_t there = 0;
    for (const std::int8_t code : codes) there += code == 127;
    std::printf("code %d, scale %g; %lld codes arrived, %lld were sent\n", codes[row * kDim],
                static_cast<double>(scales[row * kGroups]), static_cast<long long>(there),
                static_cast<long long>(sent.size()));
    return there == static_cast<std::int64_t>(sent.size()) ? 0 : 1;
} catch (const kvjit::Exception& refused) {
    return std::fprintf(stderr, "%s\n", refused.what()), 1;
}
