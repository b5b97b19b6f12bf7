// Bundles: opening one of a thousand kernels, getting at one of them, a process that starts with it.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "bundle/encode.h"
#include "common/abi.h"
#include "first_call.h"
#include "setup.h"
#include "support/rng.h"

namespace kvjit::bench {
namespace {

constexpr std::size_t kKernels = 1000;
constexpr std::size_t kImageBytes = 25'000, kSourceBytes = 60'000;  // what CPU kernels have, about

/// The real ones: of kFirstCallSpec, for this machine.
std::vector<rt::BundleEntry> real_entries(const std::string& path) {
    const std::string command = "'" KVJIT_TOOL "' bundle create '" + path + "' -q --targets host --cache-dir '" +
                                scratch_folder() + "' " + kFirstCallSpec;
    if (std::system(command.c_str()) != 0) return {};
    std::vector<rt::BundleEntry> entries;
    const auto bundle = rt::Bundle::open(*rt::open_bundle_file(path));
    for (std::size_t i = 0; i < bundle->size(); ++i) entries.push_back(*rt::read_entry(*bundle, i));
    return entries;
}

/// Of the usual size, and nobody's.
rt::BundleEntry filler(std::size_t number, test::Rng& rng) {
    std::string image(kImageBytes, '\0');
    for (char& byte : image) byte = static_cast<char>(rng.next());
    const std::string name = "filler " + std::to_string(number);
    return {{name + std::string(250, '.'), std::string(900, '.'), "target", std::move(image)},
            {std::string(kSourceBytes, '.'), ""}};
}

/// The path of a bundle of kKernels, the real ones among them. "": it can't be made.
const std::string& bundle_path() {
    static const std::string path = [] {
        const std::string made = scratch_folder() + "/thousand.kvjb";
        std::vector<rt::BundleEntry> entries = real_entries(made);
        if (entries.empty()) return std::string();
        test::Rng rng(1);
        while (entries.size() < kKernels) entries.push_back(filler(entries.size(), rng));
        std::ofstream(made, std::ios::binary) << *rt::encode_bundle(abi::kKernelAbi, entries);
        return made;
    }();
    return path;
}

/// An engine that compiles nothing and has no cache.
Result<Engine> bare_engine() {
    EngineOptions options;
    options.cache_dir = "";
    options.jit = 0;
    return Engine::create(options);
}

void report(benchmark::State& state, const std::vector<double>& seconds) {
    state.counters["median_ms"] = 1e3 * median(seconds);
    state.counters["p90_ms"] = 1e3 * quantile(seconds, 0.9);
}

double seconds_since(std::int64_t start) {
    return static_cast<double>(monotonic_nanoseconds() - start) * 1e-9;
}

/// kvjit_engine_add_bundle of a file that the system has in memory.
void BM_bundle_open(benchmark::State& state) {
    if (bundle_path().empty()) return state.SkipWithError("the bundle can't be made");
    std::vector<double> seconds;
    for (auto _ : state) {
        auto engine = bare_engine();
        if (failed(state, engine)) return;
        const std::int64_t start = monotonic_nanoseconds();
        if (failed(state, engine->add_bundle(bundle_path()))) return;
        seconds.push_back(seconds_since(start));
        state.SetIterationTime(seconds.back());
    }
    report(state, seconds);
}
BENCHMARK(BM_bundle_open)->Unit(benchmark::kMillisecond)->UseManualTime();

/// A spec's kernel and its decode program, ready to run, of an engine that has the bundle and nothing else.
void BM_bundle_kernel_ready(benchmark::State& state) {
    if (bundle_path().empty()) return state.SkipWithError("the bundle can't be made");
    const auto spec = KernelSpec::parse(kFirstCallSpec);
    if (failed(state, spec)) return;
    std::vector<double> seconds;
    for (auto _ : state) {
        auto engine = bare_engine();
        if (failed(state, engine) || failed(state, engine->add_bundle(bundle_path()))) return;
        const std::int64_t start = monotonic_nanoseconds();
        const auto kernel = engine->kernel(*spec);
        if (failed(state, kernel) || failed(state, kernel->prepare(KVJIT_PROGRAM_DECODE))) return;
        seconds.push_back(seconds_since(start));
        state.SetIterationTime(seconds.back());
        if (engine->stats().bundle_hits != 1) return state.SkipWithError("not a hit");
    }
    report(state, seconds);
}
BENCHMARK(BM_bundle_kernel_ready)->Unit(benchmark::kMillisecond)->UseManualTime();

/// From exec to the end of the first call, kernels in the bundle.
void BM_bundle_exec_to_first_call(benchmark::State& state) {
    if (bundle_path().empty()) return state.SkipWithError("the bundle can't be made");
    run_starts(state, bundle_path());
}
BENCHMARK(BM_bundle_exec_to_first_call)->Unit(benchmark::kMillisecond)->UseManualTime();

}  // namespace
}  // namespace kvjit::bench
