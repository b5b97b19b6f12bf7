// An engine's step loop on kvjit: `engine_loop --help`. step_runner.cc is where kvjit is used.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <string>
#include <thread>

#include "bandwidth.h"
#include "engine_loop.h"
#include "must.h"
#include "terminal.h"

namespace demo {
namespace {

constexpr std::size_t kReadBytes = std::size_t{512} << 20;
constexpr int kReads = 4;

std::string processor_name() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
    }
    return "unknown processor";
}

/// Triple and processor, without the list of features.
std::string short_text(const kvjit::Target& target) {
    const std::string text = target.text();
    return text.substr(0, text.find(':', text.find(':') + 1));
}

void print_head(const Options& options, const kvjit::Target& target, std::int64_t layers, int threads) {
    std::printf("%s %s, %d threads, last-level cache %zu MB\n", bold("Machine").c_str(), processor_name().c_str(),
                threads, last_level_cache_bytes() >> 20);
    std::printf("%s  %s\n", bold("Target").c_str(), short_text(target).c_str());
    std::printf("%s   Llama 3 8B's attention, %lld of its 32 layers, %lld MB of int8 cache\n", bold("Model").c_str(),
                static_cast<long long>(layers), static_cast<long long>(cache_bytes(layers) >> 20));
    if (layers < options.layers) std::printf("        (for %d layers there is too little memory)\n", options.layers);
    for (const char* op : {"KeyValueCache", "MultiHeadCacheAttention"}) {
        std::printf("%s    %s\n", bold("Spec").c_str(),
                    must(must(kvjit::KernelSpec::parse(Shape::spec(op))).text()).c_str());
    }
    std::printf("\n");
}

double best_read(int threads) {
    ReadLoop loop(kReadBytes, threads);
    double best = 0;
    for (int i = 0; i < kReads; ++i) best = std::max(best, loop.measure());
    return best;
}

int run(const Options& options) {
    const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    const int threads = options.threads > 0 ? options.threads : cores;
    const std::int64_t layers = layers_that_fit(options.layers);
    const kvjit::Target target =
        must(options.target == "host" ? kvjit::Target::host() : kvjit::Target::cpu(options.target));
    print_head(options, target, layers, threads);

    const TemporaryFolder folder;
    const ProgramTimes cold = prepare_each(open_kernels(folder.path(), target));
    const Kernels kernels = open_kernels(folder.path(), target);  // a new engine: as after a restart
    print_programs(cold, prepare_each(kernels));

    Checker checker(options.seed);
    const double read_before = best_read(threads);
    const LoopResult result = run_loop(options, kernels, layers, threads, checker);
    const double bandwidth = std::max(read_before, best_read(threads));
    std::printf("%lld sequences, %lld finished\n\n", static_cast<long long>(result.sequences),
                static_cast<long long>(result.finished));
    print_tallies(result.decode_only, result.mixed, layers, bandwidth);
    return checker.print_verdict() ? 0 : 1;
}

}  // namespace
}  // namespace demo

int main(int argc, char** argv) try {
    const demo::Options options = demo::parse_options(argc, argv);
    if (options.help) {
        std::fputs(demo::kHelp, stdout);
        return 0;
    }
    return demo::run(options);
} catch (const std::exception& failure) {
    std::fprintf(stderr, "engine_loop: %s\n", failure.what());
    return 2;
}
