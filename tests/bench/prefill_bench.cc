// Prefill: bound by arithmetic, so held against multiply-adds in registers, turn by turn in the same run.
#include <string>

#include "setup.h"
#include "yardstick.h"

namespace kvjit::bench {
namespace {

constexpr std::int64_t kRows = 2048;
/// Two products of head_dim multiply-adds for each pair of a row and a key that it sees.
constexpr double kOperations = 4.0 * kDim * kHeads * kRows * (kRows + 1) / 2;

void run_beside_arithmetic(benchmark::State& state, const test::ApiCall& call) {
    auto plan = make_plan(call);
    if (failed(state, plan)) return;
    run_beside(state, {kArithmetic}, kOperations, [&] { return plan->run(call.tensors); });
}

/// Packed keys and values, causal.
void prefill_dense(benchmark::State& state, const char* type) {
    const std::string spec = std::string("op=MultiHeadAttention,head_dim=128,group=4,is_causal=1,t1=") + type;
    test::ApiCall call({test::parse_spec(spec), {kRows}, {kRows}, kKvHeads});
    test::Rng rng(1);
    test::draw_inputs(call.tensors, rng);
    call.tensors.lse = Tensor();
    run_beside_arithmetic(state, call);
}

/// The same through an int8 cache in pages, storing included.
void prefill_cache(benchmark::State& state, const char* type) {
    const std::string spec = std::string("op=MultiHeadCacheAttention,head_dim=128,group=4,quant_bit=8,layout=L2HTD,") +
                             "cache_mode=page_table,page_size=128,t1=" + type;
    const Call call(spec, {1, kRows, kRows, 1});
    if (!call.right()) return state.SkipWithError("larger than the benchmarks' memory");
    run_beside_arithmetic(state, call);
}

BENCHMARK_CAPTURE(prefill_dense, f16, "f16")
    ->Name("BM_prefill/f16")
    ->Unit(benchmark::kMillisecond)
    ->UseManualTime()
    ->MinTime(1);
BENCHMARK_CAPTURE(prefill_dense, bf16, "bf16")
    ->Name("BM_prefill/bf16")
    ->Unit(benchmark::kMillisecond)
    ->UseManualTime()
    ->MinTime(1);
BENCHMARK_CAPTURE(prefill_dense, f32, "f32")
    ->Name("BM_prefill/f32")
    ->Unit(benchmark::kMillisecond)
    ->UseManualTime()
    ->MinTime(1);
BENCHMARK_CAPTURE(prefill_cache, f16, "f16")
    ->Name("BM_prefill/int8_cache")
    ->Unit(benchmark::kMillisecond)
    ->UseManualTime()
    ->MinTime(1);
BENCHMARK_CAPTURE(prefill_cache, bf16, "bf16")
    ->Name("BM_prefill/bf16_over_int8_cache")
    ->Unit(benchmark::kMillisecond)
    ->UseManualTime()
    ->MinTime(1);

}  // namespace
}  // namespace kvjit::bench
