// Getting at a kernel: compiled, from disk, from memory, in a process that has just been started.
#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "first_call.h"
#include "setup.h"

namespace kvjit::bench {
namespace {

Result<Engine> engine_over(const std::string& folder) {
    EngineOptions options;
    options.cache_dir = folder.c_str();
    return Engine::create(options);
}

/// A new engine that has the decode program ready, made or found. Its statistics.
Result<kvjit_engine_stats> decode_ready(const std::string& folder) {
    const auto engine = engine_over(folder);
    if (!engine) return engine.error();
    const auto kernel = engine->kernel(*KernelSpec::parse(kFirstCallSpec));
    if (!kernel) return kernel.error();
    if (auto done = kernel->prepare(KVJIT_PROGRAM_STORE | KVJIT_PROGRAM_DECODE); !done) return done.error();
    return engine->stats();
}

/// Makes VmHWM begin again at what is resident now.
void forget_peak() {
    std::ofstream("/proc/self/clear_refs") << "5";
}

/// One compile of the decode program, by a new engine that keeps nothing.
struct Compile {
    double total_seconds = 0;
    double compile_seconds = 0;  // as the engine's statistics have it: without opening Clang
    double opening_seconds = 0;  // 0 but for the first one
    double peak_growth = 0;      // resident bytes
    double file_growth = 0;      // of them pages of libraries
};

Result<Compile> compile_decode() {
    ::malloc_trim(0);
    forget_peak();
    const double resident = memory_bytes("VmRSS:"), files = memory_bytes("RssFile:");
    const std::int64_t start = monotonic_nanoseconds();
    const auto engine = engine_over("");
    if (!engine) return engine.error();
    const auto kernel = engine->kernel(*KernelSpec::parse(kFirstCallSpec));
    if (!kernel) return kernel.error();
    if (auto done = kernel->prepare(KVJIT_PROGRAM_DECODE); !done) return done.error();
    const kvjit_engine_stats stats = engine->stats();
    return Compile{static_cast<double>(monotonic_nanoseconds() - start) * 1e-9, stats.compile_seconds,
                   stats.compiler_load_seconds, memory_bytes("VmHWM:") - resident, memory_bytes("RssFile:") - files};
}

/// Clang's first compile in a process also opens it and touches its pages for the first time: taken once, apart.
void BM_compile_decode(benchmark::State& state) {
    static const Result<Compile> first = compile_decode();
    if (failed(state, first)) return;
    std::vector<double> totals, compiles;
    double peak_growth = 0;
    for (auto _ : state) {
        const Result<Compile> one = compile_decode();
        if (failed(state, one)) return;
        state.SetIterationTime(one->total_seconds);
        totals.push_back(one->total_seconds);
        compiles.push_back(one->compile_seconds);
        peak_growth = std::max(peak_growth, one->peak_growth);
    }
    state.counters["median_ms"] = 1e3 * median(totals);
    state.counters["compile_median_ms"] = 1e3 * median(compiles);
    state.counters["peak_growth_MB"] = peak_growth / 1e6;
    state.counters["first_ms"] = 1e3 * first->total_seconds;
    state.counters["first_opening_clang_ms"] = 1e3 * first->opening_seconds;
    state.counters["first_peak_growth_MB"] = first->peak_growth / 1e6;
    state.counters["first_library_pages_MB"] = first->file_growth / 1e6;
}
BENCHMARK(BM_compile_decode)->Unit(benchmark::kMillisecond)->UseManualTime()->MinTime(1);

/// A new engine, the decode and store programs read from a warm disk cache.
void BM_disk_hit(benchmark::State& state) {
    if (failed(state, decode_ready(scratch_folder()))) return;
    for (auto _ : state) {
        const auto stats = decode_ready(scratch_folder());
        if (failed(state, stats)) return;
        if (stats->disk_hits != 2) return state.SkipWithError("not a hit");
    }
}
BENCHMARK(BM_disk_hit)->Unit(benchmark::kMicrosecond)->UseRealTime();

/// From exec to the end of the first call, kernels on disk.
void BM_exec_to_first_call(benchmark::State& state) {
    if (failed(state, decode_ready(scratch_folder()))) return;
    run_starts(state, scratch_folder());
}
BENCHMARK(BM_exec_to_first_call)->Unit(benchmark::kMillisecond)->UseManualTime();

/// Asking again for a kernel that the engine has.
void BM_hot_lookup(benchmark::State& state) {
    const auto spec = KernelSpec::parse(kFirstCallSpec);
    if (failed(state, spec)) return;
    if (failed(state, shared_engine().kernel(*spec))) return;
    for (auto _ : state) {
        kvjit_kernel* kernel = nullptr;
        kvjit_engine_kernel(shared_engine().get(), &*spec, nullptr, &kernel, nullptr);
        benchmark::DoNotOptimize(kernel);
        kvjit_kernel_release(kernel);
    }
}
BENCHMARK(BM_hot_lookup);

}  // namespace
}  // namespace kvjit::bench
