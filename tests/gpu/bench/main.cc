// kvjit_gpu_bench: see usage. Exit status: 0 all was measured, 1 something failed, 2 bad arguments, 77 there is no GPU.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gpu/bench/setup.h"

namespace kvjit::bench {
namespace {

constexpr int kNoGpu = 77;  // what test drivers take for "skipped"

constexpr char kUsage[] =
    "usage: kvjit_gpu_bench [--quick] [--only GROUP]... [--target NAME] [--json FILE]\n"
    "       kvjit_gpu_bench --merge REPORT... [--json FILE]\n"
    "\n"
    "Times kvjit's CUDA kernels on a GPU, with events, and prints a table.\n"
    "  --quick       fewer shapes and rounds\n"
    "  --only GROUP  decode (store+decode and checks too), prefill, making (compiles and disk hits) or launch (what a\n"
    "                run takes on the host); default: all\n"
    "  --target NAME cuda:N; default: cuda:0\n"
    "  --json FILE   write all samples there too\n"
    "  --merge       measure nothing: make one report of the samples of several\n";

struct Group {
    const char* name;
    void (*run)(const Setup&);
};
// Making comes first: it times the compiler's own start, which happens once.
constexpr Group kGroups[] = {
    {"making", bench_making}, {"launch", bench_launch}, {"decode", bench_decode}, {"prefill", bench_prefill}};

struct Arguments {
    bool good = true, help = false, quick = false, merges = false;
    std::string target = "cuda:0";
    int device = 0;  // of the target
    std::string json;
    std::vector<std::string> only, reports;

    bool wants(const char* group) const {
        return only.empty() || std::find(only.begin(), only.end(), group) != only.end();
    }
};

bool is_group(const std::string& name) {
    return std::any_of(std::begin(kGroups), std::end(kGroups), [&](const Group& group) { return name == group.name; });
}

Arguments read_arguments(int argc, char** argv) {
    Arguments out;
    for (int i = 1; i < argc; ++i) {
        const std::string name = argv[i];
        const bool has_value = name == "--only" || name == "--target" || name == "--json";
        const std::string value = has_value && i + 1 < argc ? argv[++i] : "";
        if (name == "--help" || name == "-h")
            out.help = true;
        else if (name == "--quick")
            out.quick = true;
        else if (name == "--merge")
            out.merges = true;
        else if (name == "--json" && !value.empty())
            out.json = value;
        else if (name == "--only" && is_group(value))
            out.only.push_back(value);
        else if (name == "--target" && std::sscanf(value.c_str(), "cuda:%d", &out.device) == 1 && out.device >= 0)
            out.target = value;  // kvjit refuses what it doesn't know
        else if (out.merges && !name.starts_with("-"))
            out.reports.push_back(name);
        else
            out.good = false;
    }
    out.good = out.good && out.merges == !out.reports.empty();
    return out;
}

bool write(const Report& report, const std::string& file) {
    if (file.empty()) return true;
    std::ofstream out(file);
    out << report.json().dump(2) << "\n";
    if (out.flush()) return true;
    std::fprintf(stderr, "kvjit_gpu_bench: can't write %s\n", file.c_str());
    return false;
}

int finish(const Report& report, const Arguments& arguments) {
    report.print(stdout);
    return write(report, arguments.json) && !report.has_failures() ? 0 : 1;
}

int merge(const Arguments& arguments) {
    Report report;
    for (const std::string& file : arguments.reports) {
        std::ifstream in(file);
        report.merge(nlohmann::json::parse(in));
    }
    return finish(report, arguments);
}

void note_machine(Report& report, const gpu::Gpu& gpu, const std::string& target) {
    const int version = gpu::Gpu::driver_version();
    report.note("gpu", gpu.name());
    report.note("target", target);
    report.note("compute capability",
                std::to_string(gpu.capability() / 10) + "." + std::to_string(gpu.capability() % 10));
    report.note("multiprocessors", std::to_string(gpu.attribute(gpu::kMultiprocessorCount)));
    report.note("L2 cache", std::to_string(gpu.attribute(gpu::kL2CacheBytes) >> 20) + " MiB");
    report.note("memory", std::to_string(gpu.memory().total_bytes >> 20) + " MiB");
    report.note("driver", "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10));
    report.note("kvjit", kvjit_version());
}

/// Half a second of work, so that clocks are up when timing begins; then the limits' own rows.
void measure_limits(const Setup& setup) {
    const auto& loops = setup.limits;
    const auto start = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - start < std::chrono::milliseconds(500)) {
        loops.read().measure(setup.stream);
        loops.multiply_matrices().measure(setup.stream);
    }
    Contest contest(setup.stream);
    for (const auto* loop : {&loops.read(), &loops.multiply_matrices(), &loops.multiply_add()}) contest.enter(*loop);
    const auto times = contest.run(setup.rounds());
    setup.report.add({"limit", "", "bytes read", "loop", times[0], loops.read().work(), 0, {}});
    setup.report.add({"limit", "", "f16, mma.sync", "loop", times[1], 0, loops.multiply_matrices().work(), {}});
    setup.report.add({"limit", "", "f32", "loop", times[2], 0, loops.multiply_add().work(), {}});
}

int measure(const Arguments& arguments) {
    // NVRTC 13 keeps what it compiles in the driver's cache: then a compile's time would be that of a lookup.
    setenv("CUDA_CACHE_DISABLE", "1", 1);
    if (const auto opened = gpu::open_driver(); !opened) {
        std::printf("SKIP: %s\n", opened.error().c_str());
        return kNoGpu;
    }
    if (arguments.device >= gpu::Gpu::count()) {
        std::printf("SKIP: no GPU %d: the driver knows of %d\n", arguments.device, gpu::Gpu::count());
        return kNoGpu;
    }
    const gpu::Gpu gpu(arguments.device);
    const gpu::Stream stream;
    const limits::CudaLoops limits(gpu);
    Report report;
    note_machine(report, gpu, arguments.target);
    const Setup setup{gpu, arguments.target, stream, limits, report, arguments.quick};
    measure_limits(setup);
    for (const Group& group : kGroups) {
        if (!arguments.wants(group.name)) continue;
        attempt(setup, group.name, [&] { group.run(setup); });
    }
    return finish(report, arguments);
}

}  // namespace
}  // namespace kvjit::bench

int main(int argc, char** argv) {
    using namespace kvjit::bench;
    const Arguments arguments = read_arguments(argc, argv);
    if (arguments.help || !arguments.good) {
        std::fputs(kUsage, arguments.help ? stdout : stderr);
        return arguments.help ? 0 : 2;
    }
    try {
        return arguments.merges ? merge(arguments) : measure(arguments);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "kvjit_gpu_bench: %s\n", error.what());
        return 1;
    }
}
