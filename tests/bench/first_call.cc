// kvjit_first_call STORE START: makes an engine, plans and runs one decode step whose kernels lie in the store, a
// cache's folder or a bundle, *.kvjb, and prints the nanoseconds since START and its peak of resident bytes. Fails
// rather than compile.
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "first_call.h"
#include "kvjit/kvjit.hpp"

namespace {

constexpr std::int64_t kTokens = 512, kHeads = 32, kKvHeads = 8, kDim = 128;

alignas(64) std::uint16_t query[kHeads * kDim], key_value[kKvHeads * kDim], output[kHeads * kDim];
alignas(64) std::int8_t cache[2 * kKvHeads * kTokens * kDim];
alignas(64) std::uint16_t scale[2 * kKvHeads * kTokens * kDim / 8];

kvjit::Batch one_step() {
    static const std::int64_t seqstarts[] = {0, 1}, kvstarts[] = {0, 300}, start_pos[] = {299}, pages[] = {0, 128, 256};
    kvjit::Batch batch;
    batch.batch_size = 1;
    batch.num_heads = kHeads;
    batch.num_kv_heads = kKvHeads;
    batch.max_tokens = kTokens;
    batch.decoding_batches = 1;
    batch.seqstarts = seqstarts;
    batch.kvstarts = kvstarts;
    batch.start_pos = start_pos;
    batch.cachestarts = kvjit::Tensor(pages, KVJIT_I64, {1, 3});
    return batch;
}

kvjit::Tensors tensors() {
    kvjit::Tensors tensors;
    tensors.query = kvjit::Tensor(query, KVJIT_F16, {1, kHeads, kDim});
    tensors.current_key = tensors.current_value = kvjit::Tensor(key_value, KVJIT_F16, {1, kKvHeads, kDim});
    tensors.cache = kvjit::Tensor(cache, KVJIT_I8, {1, 2, kKvHeads, kTokens, kDim});
    tensors.scale = kvjit::Tensor(scale, KVJIT_F16, {1, 2, kKvHeads, kTokens, kDim / 8});
    tensors.attn_output = kvjit::Tensor(output, KVJIT_F16, {1, kHeads, kDim});
    return tensors;
}

/// The monotonic clock when the call was done, before what it took is given back; none: it failed.
std::optional<std::int64_t> run(const std::string& store) {
    const bool is_bundle = store.ends_with(".kvjb");
    kvjit::EngineOptions options;
    options.cache_dir = is_bundle ? "" : store.c_str();
    options.jit = 0;
    auto engine = kvjit::Engine::create(options);
    const auto spec = kvjit::KernelSpec::parse(kvjit::bench::kFirstCallSpec);
    if (!engine || !spec) return std::nullopt;
    if (is_bundle && !engine->add_bundle(store)) return std::nullopt;
    const auto kernel = engine->kernel(*spec);
    if (!kernel) return std::nullopt;
    auto plan = kernel->plan(one_step());
    if (!plan || !plan->run(tensors())) return std::nullopt;
    return kvjit::bench::monotonic_nanoseconds();
}

}  // namespace

int main(int argc, char** argv) {
    const std::optional<std::int64_t> done = argc == 3 ? run(argv[1]) : std::nullopt;
    if (!done) return 1;
    std::printf("%lld %.0f\n", static_cast<long long>(*done - std::atoll(argv[2])),
                kvjit::bench::memory_bytes("VmHWM:"));
    return 0;
}
