// Store: bound by memory, so held against a loop that only reads, turn by turn in the same run.
#include <string>

#include "setup.h"
#include "yardstick.h"

namespace kvjit::bench {
namespace {

constexpr bool kPages = true;
constexpr std::int64_t kNewTokens = 2048;

struct Config {
    const CacheKind* kind;
    const char* layout;
};

/// New tokens of one sequence into an empty cache, of as many layers as lie beyond the processor's caches. The bytes:
/// keys and values read, codes and scales written.
void store(benchmark::State& state, Config config) {
    const std::string spec = spec_text("KeyValueCache", *config.kind, config.layout, kPages);
    Call::Size size{1, kNewTokens, kNewTokens, 1};
    size.layers = layers_beyond_cache(Call(spec, size).layer_bytes());
    const Call call(spec, size);
    if (!call.right()) return state.SkipWithError("larger than the benchmarks' memory");
    auto plan = make_plan(call);
    if (failed(state, plan)) return;
    const double given = kNewTokens * 2 * kKvHeads * kDim * 2;
    run_beside(state, {kRead}, static_cast<double>(size.layers) * (given + call.layer_bytes()),
               [&] { return run_layers(*plan, call); });
    state.counters["layers"] = static_cast<double>(size.layers);
}

const bool kRegistered = [] {
    for (const CacheKind* kind : {&kF16, &kInt8, &kInt4}) {
        for (const char* layout : {"L2HTD", "TL2HD"}) {
            const std::string name = std::string("BM_store/") + kind->name + "/" + layout + "/pages";
            benchmark::RegisterBenchmark(name.c_str(), store, Config{kind, layout})
                ->Unit(benchmark::kMillisecond)
                ->UseManualTime()
                ->MinTime(0.25);
        }
    }
    return true;
}();

}  // namespace
}  // namespace kvjit::bench
