// Prefill: bound by arithmetic, so held against multiply-adds in registers, and AMX's products where the machine has
// them, turn by turn in the same run.
#include <string>

#include "setup.h"
#include "yardstick.h"

namespace kvjit::bench {
namespace {

struct Case {
    const char* name;
    std::string fields;  // besides op and group
    std::int64_t dim = kDim, rows = 2048, keys = rows;
};

/// Packed keys and values, causal.
const Case kDense[] = {
    {"f16", "is_causal=1,t1=f16"},
    {"bf16", "is_causal=1,t1=bf16"},
    {"f32", "is_causal=1,t1=f32"},
    {"f16/D:64", "is_causal=1,t1=f16", 64},
    {"f16/D:256", "is_causal=1,t1=f16", 256},
    {"bf16/D:64", "is_causal=1,t1=bf16", 64},
    {"bf16/D:256", "is_causal=1,t1=bf16", 256},
    {"f16/soft_cap", "is_causal=1,t1=f16,has_soft_cap=1"},
    {"bf16/soft_cap", "is_causal=1,t1=bf16,has_soft_cap=1"},
};

/// Through an int8 cache in pages of 128 tokens, storing included. "chunk": the last 512 of 8k tokens.
const Case kCached[] = {
    {"int8_cache", "t1=f16"},
    {"bf16_over_int8_cache", "t1=bf16"},
    {"int8_cache/chunk", "t1=f16", kDim, 512, 8192},
    {"bf16_over_int8_cache/chunk", "t1=bf16", kDim, 512, 8192},
};

/// Two products of `dim` multiply-adds for each pair of a row and a key that it sees.
double operations(const Case& which) {
    const auto rows = static_cast<double>(which.rows), keys = static_cast<double>(which.keys);
    return 4.0 * static_cast<double>(which.dim) * kHeads * rows * (keys - (rows - 1) / 2);
}

std::string fields(const Case& which) {
    return ",group=4,head_dim=" + std::to_string(which.dim) + "," + which.fields;
}

void run_beside_arithmetic(benchmark::State& state, const Case& which, const test::ApiCall& call) {
    auto plan = make_plan(call);
    if (failed(state, plan)) return;
    run_beside(state, arithmetic_yardsticks(), operations(which), [&] { return plan->run(call.tensors); });
}

void prefill_dense(benchmark::State& state, const Case& which) {
    const std::string spec = "op=MultiHeadAttention" + fields(which);
    test::ApiCall call({test::parse_spec(spec), {which.rows}, {which.keys}, kKvHeads});
    if (call.spec.has_soft_cap != 0) call.batch.soft_cap = 50;
    test::Rng rng(1);
    test::draw_inputs(call.tensors, rng);
    call.tensors.lse = Tensor();
    run_beside_arithmetic(state, which, call);
}

void prefill_cached(benchmark::State& state, const Case& which) {
    const std::string spec =
        "op=MultiHeadCacheAttention" + fields(which) + ",quant_bit=8,layout=L2HTD,cache_mode=page_table,page_size=128";
    const Call call(spec, {1, which.rows, which.keys, 1});
    if (!call.right()) return state.SkipWithError("larger than the benchmarks' memory");
    run_beside_arithmetic(state, which, call);
}

template <class F>
void add(const Case& which, F run) {
    benchmark::RegisterBenchmark((std::string("BM_prefill/") + which.name).c_str(), run, which)
        ->Unit(benchmark::kMillisecond)
        ->UseManualTime()
        ->MinTime(1);
}

const bool kRegistered = [] {
    for (const Case& which : kDense) add(which, prefill_dense);
    for (const Case& which : kCached) add(which, prefill_cached);
    return true;
}();

}  // namespace
}  // namespace kvjit::bench
