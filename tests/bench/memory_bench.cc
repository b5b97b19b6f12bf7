// Decode and store: bound by memory, so held against a loop that only reads, turn by turn in the same run.
#include <string>

#include "setup.h"
#include "yardstick.h"

namespace kvjit::bench {
namespace {

constexpr std::int64_t kKeys = 32768;  // of all sequences together
constexpr std::int64_t kNewTokens = 2048;

struct Config {
    const CacheKind* kind;
    const char* layout;
    bool pages;
};

/// Of as many layers as lie beyond the processor's caches.
Call beyond_cache(const char* op, const Config& config, Call::Size size) {
    const std::string spec = spec_text(op, *config.kind, config.layout, config.pages);
    size.layers = layers_beyond_cache(Call(spec, size).layer_bytes());
    return Call(spec, size);
}

/// Runs a plan on all layers, one after the other, as an engine's step does, held against reading `bytes` a layer.
void run_beside_read(benchmark::State& state, Plan& plan, const Call& call, double bytes) {
    const std::int64_t layers = call.size.layers;
    run_beside(state, kRead, static_cast<double>(layers) * bytes, [&] {
        Result<void> done;
        for (std::int64_t layer = 0; done && layer < layers; ++layer) done = plan.run(call.tensors, layer);
        return done;
    });
    state.counters["layers"] = static_cast<double>(layers);
}

/// A decode step of range(0) sequences. The bytes: codes and scales of all keys and values, once.
void decode(benchmark::State& state, Config config) {
    const std::int64_t sequences = state.range(0);
    const Call call = beyond_cache("MultiHeadCacheAttention", config, {sequences, 1, kKeys / sequences, 1});
    if (!call.right()) return state.SkipWithError("larger than the benchmarks' memory");
    auto plan = make_plan(call);
    if (failed(state, plan)) return;
    run_beside_read(state, *plan, call, call.layer_bytes());
}

/// New tokens of one sequence into an empty cache. The bytes: keys and values read, codes and scales written.
void store(benchmark::State& state, Config config) {
    const Call call = beyond_cache("KeyValueCache", config, {1, kNewTokens, kNewTokens, 1});
    if (!call.right()) return state.SkipWithError("larger than the benchmarks' memory");
    auto plan = make_plan(call);
    if (failed(state, plan)) return;
    const double given = kNewTokens * 2 * kKvHeads * kDim * 2;
    run_beside_read(state, *plan, call, given + call.layer_bytes());
}

std::string name_of(const char* benchmark, const Config& config) {
    return std::string(benchmark) + "/" + config.kind->name + "/" + config.layout + "/" +
           (config.pages ? "pages" : "offset");
}

void register_config(const Config& config) {
    benchmark::RegisterBenchmark(name_of("BM_decode", config).c_str(), decode, config)
        ->ArgName("B")
        ->Arg(1)
        ->Arg(8)
        ->Arg(64)
        ->Unit(benchmark::kMillisecond)
        ->UseManualTime()
        ->MinTime(0.5);
    if (!config.pages) return;
    benchmark::RegisterBenchmark(name_of("BM_store", config).c_str(), store, config)
        ->Unit(benchmark::kMillisecond)
        ->UseManualTime()
        ->MinTime(0.25);
}

const bool kRegistered = [] {
    for (const CacheKind* kind : {&kF16, &kInt8, &kInt4}) {
        for (const char* layout : {"L2HTD", "TL2HD"}) {
            for (const bool pages : {true, false}) register_config({kind, layout, pages});
        }
    }
    return true;
}();

}  // namespace
}  // namespace kvjit::bench
