#include "programs.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "model.h"
#include "must.h"
#include "terminal.h"

namespace demo {
namespace {

double seconds_spent(const kvjit_engine_stats& stats) {
    return stats.compile_seconds + stats.disk_seconds;
}

/// Seconds that the engine spent on preparing one program.
double prepare_one(const Kernels& kernels, const kvjit::Kernel& kernel, kvjit_phases phase) {
    const double before = seconds_spent(kernels.engine.stats());
    must(kernel.prepare(phase));
    return seconds_spent(kernels.engine.stats()) - before;
}

void print_row(const char* name, double cold, double warm) {
    std::printf("  %-30s %9.1f ms %12.2f ms\n", name, cold * 1e3, warm * 1e3);
}

}  // namespace

TemporaryFolder::TemporaryFolder() : path_(std::filesystem::temp_directory_path() / "kvjit-demo-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no temporary folder can be made as " + path_);
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

Kernels open_kernels(const std::string& cache_folder, const kvjit::Target& target) {
    kvjit::EngineOptions options;
    options.cache_dir = cache_folder.c_str();
    kvjit::Engine engine = must(kvjit::Engine::create(options));
    const auto store = must(kvjit::KernelSpec::parse(Shape::spec("KeyValueCache")));
    const auto attention = must(kvjit::KernelSpec::parse(Shape::spec("MultiHeadCacheAttention")));
    kvjit::Kernel store_kernel = must(engine.kernel(store, target));
    kvjit::Kernel attention_kernel = must(engine.kernel(attention, target));
    return {std::move(engine), std::move(store_kernel), std::move(attention_kernel)};
}

ProgramTimes prepare_each(const Kernels& kernels) {
    ProgramTimes times{};
    times.store = prepare_one(kernels, kernels.store, KVJIT_STORE);
    // The same program of another kernel: found in memory.
    must(kernels.attention.prepare(KVJIT_STORE));
    times.decode = prepare_one(kernels, kernels.attention, KVJIT_DECODE);
    times.prefill = prepare_one(kernels, kernels.attention, KVJIT_PREFILL);
    times.merge = prepare_one(kernels, kernels.attention, KVJIT_MERGE);
    times.compiler_loading = kernels.engine.stats().compiler_load_seconds;
    return times;
}

void print_programs(const ProgramTimes& cold, const ProgramTimes& warm) {
    std::printf("%s\n", bold("Programs                          compiled     found on disk").c_str());
    print_row("store (both kernels share it)", cold.store, warm.store);
    print_row("attend, few rows: decode", cold.decode, warm.decode);
    print_row("attend, many rows: prefill", cold.prefill, warm.prefill);
    print_row("merge of split keys", cold.merge, warm.merge);
    std::printf("  %-30s %9.1f ms %15s\n\n", "opening Clang, once a process", cold.compiler_loading * 1e3, "never");
}

}  // namespace demo
