#include "call.h"

#include <cstring>

#include "support/rng.h"

namespace kvjit::test {
namespace {

constexpr std::int64_t kHeads = 8, kKvHeads = 2, kDim = 64, kPage = 16, kScales = kDim / 8;

std::vector<float> normals(Rng& rng, std::int64_t count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = static_cast<float>(rng.normal());
    return values;
}

}  // namespace

Call::Call(std::int64_t sequences, std::int64_t tokens, std::int64_t keys)
    : sequences_(sequences), tokens_(sequences * tokens), columns_((keys + kPage - 1) / kPage) {
    Rng rng(7);
    for (std::int64_t b = 0; b <= sequences; ++b) {
        seqstarts_.push_back(b * tokens);
        kvstarts_.push_back(b * keys);
    }
    start_pos_.assign(static_cast<std::size_t>(sequences), keys - tokens);
    for (std::int64_t page = sequences * columns_; page-- > 0;) pages_.push_back(page * kPage);
    query_ = normals(rng, tokens_ * kHeads * kDim);
    key_ = normals(rng, tokens_ * kKvHeads * kDim);
    value_ = normals(rng, tokens_ * kKvHeads * kDim);
    output_.assign(query_.size(), -1);
    const std::int64_t slots = 2 * kKvHeads * sequences * columns_ * kPage;
    for (std::int64_t i = 0; i < slots * kDim; ++i) cache_.push_back(static_cast<std::int8_t>(rng.between(-127, 127)));
    scale_.assign(static_cast<std::size_t>(slots * kScales), 0.01f);
}

Batch Call::batch() const {
    Batch batch;
    batch.batch_size = sequences_;
    batch.num_heads = kHeads;
    batch.num_kv_heads = kKvHeads;
    batch.max_tokens = sequences_ * columns_ * kPage;
    batch.decoding_batches = sequences_;
    batch.seqstarts = seqstarts_.data();
    batch.kvstarts = kvstarts_.data();
    batch.start_pos = start_pos_.data();
    batch.cachestarts = Tensor(pages_.data(), KVJIT_I64, {sequences_, columns_});
    return batch;
}

Tensors Call::tensors() {
    const std::int64_t slots = sequences_ * columns_ * kPage;
    Tensors tensors;
    tensors.query = Tensor(query_.data(), KVJIT_F32, {tokens_, kHeads, kDim});
    tensors.current_key = Tensor(key_.data(), KVJIT_F32, {tokens_, kKvHeads, kDim});
    tensors.current_value = Tensor(value_.data(), KVJIT_F32, {tokens_, kKvHeads, kDim});
    tensors.cache = Tensor(cache_.data(), KVJIT_I8, {1, 2, kKvHeads, slots, kDim});
    tensors.scale = Tensor(scale_.data(), KVJIT_F32, {1, 2, kKvHeads, slots, kScales});
    tensors.attn_output = Tensor(output_.data(), KVJIT_F32, {tokens_, kHeads, kDim});
    return tensors;
}

std::uint64_t Call::output_hash() const {
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (float element : output_) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, &element, sizeof bits);
        hash = (hash ^ bits) * 0x100000001b3U;
    }
    return hash;
}

Result<void> plan_and_run(const Kernel& kernel, Call& call) {
    auto plan = kernel.plan(call.batch());
    if (!plan) return plan.error();
    return plan->run(call.tensors());
}

Result<Kernel> call_kernel(const EngineOptions& options) {
    const auto spec = KernelSpec::parse(kCallSpec);
    if (!spec) return spec.error();
    const auto engine = Engine::create(options);
    if (!engine) return engine.error();
    return engine->kernel(*spec);
}

}  // namespace kvjit::test
