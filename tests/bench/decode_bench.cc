// Decode. Bound by memory where the cache lies there: held against loops that only read, turn by turn in the same run.
// Where it doesn't, what remains is arithmetic, and how much a small step costs besides.
#include <string>
#include <string_view>

#include "cache_rows.h"
#include "setup.h"
#include "yardstick.h"

namespace kvjit::bench {
namespace {

struct Size {
    std::int64_t sequences, keys;
};

struct Case {
    const char* name;
    std::string fields;  // besides the operator
    std::vector<Size> sizes;
};

const std::string kPages128 = "cache_mode=page_table,page_size=128,", kPages16 = "cache_mode=page_table,page_size=16,",
                  kSlots = "cache_mode=token_table,", kOffset = "cache_mode=offset,",
                  kBlocks = "cache_mode=block_table,page_size=16,";
const std::string kLlama = "head_dim=128,group=4,";
const std::string kHalf = "quant_bit=0,", kBrain = "t1=bf16,", kByte = "quant_bit=8,",
                  kByte32 = "quant_bit=8,quant_group=32,", kNibble = "quant_bit=4,",
                  kNibble32 = "quant_bit=4,quant_group=32,";
const std::string kHeadOuter = "layout=L2HTD", kHeadInner = "layout=TL2HD", kBlocksInner = "layout=L2NTHD";

const std::vector<Size> kLong = {{1, 32768}, {8, 4096}}, kOne = {{1, 32768}},
                        kAll = {{1, 4096}, {1, 32768}, {8, 4096}, {64, 512}};

const Case kFromMemory[] = {
    {"f16/L2HTD/pages", kLlama + kHalf + kPages128 + kHeadOuter, kAll},
    {"f16/TL2HD/pages", kLlama + kHalf + kPages128 + kHeadInner, kAll},
    {"f16/L2NTHD/blocks", kLlama + kHalf + kBlocks + kBlocksInner, kLong},
    {"f16/L2HTD/offset", kLlama + kHalf + kOffset + kHeadOuter, kLong},
    {"f16/TL2HD/offset", kLlama + kHalf + kOffset + kHeadInner, kLong},
    {"f16/L2HTD/pages_of_16", kLlama + kHalf + kPages16 + kHeadOuter, kLong},
    {"f16/TL2HD/pages_of_16", kLlama + kHalf + kPages16 + kHeadInner, kLong},
    {"f16/L2HTD/slots", kLlama + kHalf + kSlots + kHeadOuter, kLong},
    {"f16/TL2HD/slots", kLlama + kHalf + kSlots + kHeadInner, kLong},
    {"f16/L2HTD/D:64", "head_dim=64,group=4," + kHalf + kPages128 + kHeadOuter, kOne},
    {"f16/L2HTD/D:256", "head_dim=256,group=4," + kHalf + kPages128 + kHeadOuter, {{1, 16384}}},
    {"f16/L2HTD/G:1", "head_dim=128,group=1," + kHalf + kPages128 + kHeadOuter, kOne},
    {"f16/L2HTD/G:8", "head_dim=128,group=8," + kHalf + kPages128 + kHeadOuter, kOne},
    {"f16/L2HTD/alibi", kLlama + "is_alibi=1," + kHalf + kPages128 + kHeadOuter, kOne},
    {"f16/L2HTD/mask", kLlama + "attn_mask=3," + kHalf + kPages128 + kHeadOuter, kOne},
    {"bf16/L2HTD/pages", kLlama + kBrain + kPages128 + kHeadOuter, kAll},
    {"bf16/TL2HD/pages", kLlama + kBrain + kPages128 + kHeadInner, kLong},
    {"bf16/L2HTD/G:8", "head_dim=128,group=8," + kBrain + kPages128 + kHeadOuter, kOne},
    {"int8/L2HTD/pages", kLlama + kByte + kPages128 + kHeadOuter, kLong},
    {"int8/TL2HD/pages", kLlama + kByte + kPages128 + kHeadInner, kLong},
    {"int8_g32/L2HTD/pages", kLlama + kByte32 + kPages128 + kHeadOuter, kLong},
    {"int4/L2HTD/pages", kLlama + kNibble + kPages128 + kHeadOuter, kLong},
    {"int4/TL2HD/pages", kLlama + kNibble + kPages128 + kHeadInner, kLong},
    {"int4_g32/L2HTD/pages", kLlama + kNibble32 + kPages128 + kHeadOuter, kLong},
    {"bf16_over_int4/L2HTD/pages", kLlama + "t1=bf16," + kNibble + kPages128 + kHeadOuter, kLong},
};

const Case kFromCache[] = {
    {"f16/L2HTD", kLlama + kHalf + kPages128 + kHeadOuter, {}},
    {"f16/TL2HD", kLlama + kHalf + kPages128 + kHeadInner, {}},
    {"f16/L2HTD/D:64", "head_dim=64,group=4," + kHalf + kPages128 + kHeadOuter, {}},
    {"f16/L2HTD/D:256", "head_dim=256,group=4," + kHalf + kPages128 + kHeadOuter, {}},
    {"f16/L2HTD/G:1", "head_dim=128,group=1," + kHalf + kPages128 + kHeadOuter, {}},
    {"f16/L2HTD/G:8", "head_dim=128,group=8," + kHalf + kPages128 + kHeadOuter, {}},
    {"f16/TL2HD/G:8", "head_dim=128,group=8," + kHalf + kPages128 + kHeadInner, {}},
    {"f16/L2HTD/alibi", kLlama + "is_alibi=1," + kHalf + kPages128 + kHeadOuter, {}},
    {"f16/L2HTD/mask", kLlama + "attn_mask=3," + kHalf + kPages128 + kHeadOuter, {}},
    {"bf16/L2HTD", kLlama + kBrain + kPages128 + kHeadOuter, {}},
    {"bf16/L2HTD/G:8", "head_dim=128,group=8," + kBrain + kPages128 + kHeadOuter, {}},
    {"int8/L2HTD", kLlama + kByte + kPages128 + kHeadOuter, {}},
    {"int8_g32/L2HTD", kLlama + kByte32 + kPages128 + kHeadOuter, {}},
    {"int4/L2HTD", kLlama + kNibble + kPages128 + kHeadOuter, {}},
    {"int4_g32/L2HTD", kLlama + kNibble32 + kPages128 + kHeadOuter, {}},
    {"bf16_over_int8/L2HTD", kLlama + "t1=bf16," + kByte + kPages128 + kHeadOuter, {}},
    {"bf16_over_int4/L2HTD", kLlama + "t1=bf16," + kNibble + kPages128 + kHeadOuter, {}},
    {"bf16_over_int4/L2HTD/G:8", "head_dim=128,group=8,t1=bf16," + kNibble + kPages128 + kHeadOuter, {}},
};

std::string spec_of(const Case& which) {
    return "op=MultiHeadCacheAttention," + which.fields;
}

/// A step of range(0) sequences over all layers. The bytes: codes and scales of all keys and values, once.
void decode(benchmark::State& state, const Case& which) {
    Call::Size size{state.range(0), 1, state.range(1), 1};
    size.layers = layers_beyond_cache(Call(spec_of(which), size).layer_bytes());
    const Call call(spec_of(which), size);
    if (!call.right()) return state.SkipWithError("larger than the benchmarks' memory");
    auto plan = make_plan(call);
    if (failed(state, plan)) return;
    const CacheRows rows(call);
    const Yardstick plain_rows{"rows", "GB/s", [&] { return rows.measure(RowsWay::kPlain); }};
    const Yardstick prefetched_rows{"rows_prefetched", "GB/s", [&] { return rows.measure(RowsWay::kPrefetched); }};
    run_beside(state, {kRead, kReadPrefetched, kReadStreams, plain_rows, prefetched_rows},
               static_cast<double>(size.layers) * call.layer_bytes(), [&] { return run_layers(*plan, call); });
    state.counters["layers"] = static_cast<double>(size.layers);
}

/// One thread, on a cache that fits its second-level one; range(0) new tokens. key_head: CPU time for each key of a kv
/// head.
void decode_cached(benchmark::State& state, const Case& which) {
    constexpr std::int64_t kKeys = 128;
    const Call call(spec_of(which), {1, state.range(0), kKeys, 1});
    const auto kernel = shared_engine().kernel(call.spec);
    if (failed(state, kernel)) return;
    PlanOptions options;
    options.num_threads = 1;
    auto plan = kernel->plan(call.batch, options);
    if (failed(state, plan)) return;
    for (auto _ : state) {
        if (failed(state, plan->run(call.tensors))) return;
    }
    state.counters["key_head"] = {static_cast<double>(kKeys * kKvHeads),
                                  benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert};
}

const bool kRegistered = [] {
    for (const Case& which : kFromMemory) {
        const std::string name = std::string("BM_decode/") + which.name;
        auto* made = benchmark::RegisterBenchmark(name.c_str(), decode, which);
        made->ArgNames({"B", "keys"})->Unit(benchmark::kMillisecond)->UseManualTime()->Iterations(9);
        for (const Size& size : which.sizes) made->Args({size.sequences, size.keys});
    }
    for (const Case& which : kFromCache) {
        const std::string name = std::string("BM_decode_cached/") + which.name;
        auto* made = benchmark::RegisterBenchmark(name.c_str(), decode_cached, which);
        made->ArgName("tokens")->Unit(benchmark::kMicrosecond)->Arg(1);
        const std::string_view varied = which.name;
        if (varied == "f16/L2HTD" || varied == "bf16/L2HTD") made->Arg(2)->Arg(4)->Arg(5)->Arg(8);
    }
    return true;
}();

}  // namespace
}  // namespace kvjit::bench
