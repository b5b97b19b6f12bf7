// What a step costs besides memory and arithmetic: plans, and calls so small that little else is left.
#include <algorithm>
#include <string>

#include "setup.h"
#include "support/rng.h"

namespace kvjit::bench {
namespace {

constexpr bool kPages = true;
constexpr const char* kAttention = "MultiHeadCacheAttention";
constexpr const char* kKeyValueCache = "KeyValueCache";
constexpr std::int64_t kCachedKeys = 128;
constexpr std::int64_t kWindow = 4096;

/// A decode step of `sequences`, the longest of them of 64 pages: all alike, or of lengths that are drawn.
test::CallShape step_shape(std::int64_t sequences, bool ragged) {
    constexpr std::int64_t kKeys = 64 * 128;
    test::CallShape shape = test::even_shape(spec_text(kAttention, kInt8, "L2HTD", kPages), sequences, 1, kKeys);
    shape.num_kv_heads = kKvHeads;
    test::Rng rng(3);
    if (ragged) std::ranges::generate(shape.keys, [&] { return rng.between(1, kKeys); });
    return shape;
}

/// range(0) sequences; range(1) the level of checking; range(2) whether lengths are ragged.
void BM_plan(benchmark::State& state) {
    test::IndexArrays arrays(step_shape(state.range(0), state.range(2) != 0));
    test::Rng rng(2);
    arrays.place_tokens(&rng);
    arrays.batch.decoding_batches = state.range(0);
    const auto kernel = shared_engine().kernel(arrays.spec);
    if (failed(state, kernel)) return;
    PlanOptions options;
    options.check_level = static_cast<std::int32_t>(state.range(1));
    for (auto _ : state) {
        const auto plan = kernel->plan(arrays.batch, options);
        if (failed(state, plan)) return;
    }
}
BENCHMARK(BM_plan)
    ->ArgNames({"B", "check", "ragged"})
    ->ArgsProduct({{1, 16, 64, 256, 512}, {KVJIT_CHECK_FULL, KVJIT_CHECK_NONE}, {0, 1}})
    ->Unit(benchmark::kMicrosecond);

/// One layer of a small decode step, its keys and values in the processor's caches: range(0) sequences of range(1)
/// keys.
void BM_run_small(benchmark::State& state) {
    const Call call(spec_text(kAttention, kInt8, "L2HTD", kPages), {state.range(0), 1, state.range(1), 1});
    auto plan = make_plan(call);
    if (failed(state, plan)) return;
    for (auto _ : state) {
        if (failed(state, plan->run(call.tensors))) return;
    }
}
BENCHMARK(BM_run_small)
    ->ArgNames({"B", "keys"})
    ->Args({1, 16})
    ->Args({1, 128})
    ->Args({4, 128})
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();

/// One layer of a decode over range(0) keys, of which a window leaves the last 4096: as many cost the same.
void BM_decode_window(benchmark::State& state) {
    Call call(spec_text(kAttention, kF16, "L2HTD", kPages) + ",has_window=1", {1, 1, state.range(0), 1});
    if (!call.right()) return state.SkipWithError("larger than the benchmarks' memory");
    call.batch.window_left = kWindow - 1;
    auto plan = make_plan(call);
    if (failed(state, plan)) return;
    for (auto _ : state) {
        if (failed(state, plan->run(call.tensors))) return;
    }
}
BENCHMARK(BM_decode_window)->ArgName("keys")->Arg(4096)->Arg(32768)->Unit(benchmark::kMicrosecond)->UseRealTime();

/// One layer of one sequence of 128 keys, of which `tokens` are new: what kernels cost besides memory.
void cached(benchmark::State& state, const char* op, const CacheKind& kind, std::int64_t tokens) {
    const Call call(spec_text(op, kind, "L2HTD", kPages), {1, tokens, kCachedKeys, 1});
    auto plan = make_plan(call);
    if (failed(state, plan)) return;
    for (auto _ : state) {
        if (failed(state, plan->run(call.tensors))) return;
    }
}

void register_cached(const char* name, const char* op, const CacheKind& kind, std::int64_t tokens) {
    const std::string full = std::string("BM_cached/") + name + "/" + kind.name;
    benchmark::RegisterBenchmark(full.c_str(), cached, op, kind, tokens)->Unit(benchmark::kMicrosecond)->UseRealTime();
}

const bool kRegistered = [] {
    for (const CacheKind* kind : {&kF16, &kInt8, &kInt4}) {
        register_cached("decode", kAttention, *kind, 1);
        register_cached("store", kKeyValueCache, *kind, kCachedKeys);
        register_cached("prefill", kAttention, *kind, kCachedKeys);
    }
    return true;
}();

}  // namespace
}  // namespace kvjit::bench
