// Prefill: bound by arithmetic, so held against multiply-adds in registers, turn by turn in the same run.
#include <cstring>
#include <string>

#include "half.h"
#include "setup.h"
#include "support/rng.h"
#include "yardstick.h"

namespace kvjit::bench {
namespace {

constexpr std::int64_t kRows = 2048;
/// Two products of head_dim multiply-adds for each pair of a row and a key that it sees.
constexpr double kOperations = 4.0 * kDim * kHeads * kRows * (kRows + 1) / 2;

void run_beside_arithmetic(benchmark::State& state, Plan& plan, const Tensors& tensors) {
    run_beside(state, kArithmetic, kOperations, [&] { return plan.run(tensors); });
}

std::vector<float> normal_floats(std::int64_t count) {
    test::Rng rng(1);
    std::vector<float> numbers(static_cast<std::size_t>(count));
    for (float& number : numbers) number = static_cast<float>(rng.normal());
    return numbers;
}

/// Elements of a type that stands for itself in memory: 2 or 4 bytes.
std::vector<char> bytes_of(const std::vector<float>& numbers, kvjit_dtype dtype) {
    const std::size_t bytes = dtype == KVJIT_F32 ? 4 : 2;
    std::vector<char> memory(numbers.size() * bytes);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const std::uint16_t half = demo::to_half(numbers[i]);
        std::memcpy(&memory[i * bytes], bytes == 4 ? static_cast<const void*>(&numbers[i]) : &half, bytes);
    }
    return memory;
}

/// Packed keys and values, causal.
void prefill_dense(benchmark::State& state, kvjit_dtype dtype) {
    const std::vector<std::int64_t> starts{0, kRows};
    const std::vector<float> numbers = normal_floats(kRows * kHeads * kDim);
    const std::vector<char> query = bytes_of(numbers, dtype), key = query, value = query;
    std::vector<char> output(query.size());
    Batch batch;
    batch.batch_size = 1;
    batch.num_heads = kHeads;
    batch.num_kv_heads = kKvHeads;
    batch.seqstarts = batch.kvstarts = starts.data();
    const std::string type = dtype == KVJIT_F32 ? "f32" : "f16";
    auto plan = make_plan("op=MultiHeadAttention,head_dim=128,group=4,is_causal=1,t1=" + type, batch);
    if (failed(state, plan)) return;
    Tensors tensors;
    tensors.query = Tensor(query.data(), dtype, {kRows, kHeads, kDim});
    tensors.key = Tensor(key.data(), dtype, {kRows, kKvHeads, kDim});
    tensors.value = Tensor(value.data(), dtype, {kRows, kKvHeads, kDim});
    tensors.attn_output = Tensor(output.data(), dtype, {kRows, kHeads, kDim});
    run_beside_arithmetic(state, *plan, tensors);
}

/// The same through an int8 cache in pages, storing included.
void prefill_cache(benchmark::State& state) {
    const Call call(kInt8, "L2HTD", true, {1, kRows, kRows, 1});
    if (!call.right()) return state.SkipWithError("larger than the benchmarks' memory");
    auto plan = make_plan(spec_text("MultiHeadCacheAttention", kInt8, "L2HTD", true), call.batch());
    if (failed(state, plan)) return;
    run_beside_arithmetic(state, *plan, call.tensors());
}

BENCHMARK_CAPTURE(prefill_dense, f16, KVJIT_F16)
    ->Name("BM_prefill/f16")
    ->Unit(benchmark::kMillisecond)
    ->UseManualTime()
    ->MinTime(1);
BENCHMARK_CAPTURE(prefill_dense, f32, KVJIT_F32)
    ->Name("BM_prefill/f32")
    ->Unit(benchmark::kMillisecond)
    ->UseManualTime()
    ->MinTime(1);
BENCHMARK(prefill_cache)->Name("BM_prefill/int8_cache")->Unit(benchmark::kMillisecond)->UseManualTime()->MinTime(1);

}  // namespace
}  // namespace kvjit::bench
