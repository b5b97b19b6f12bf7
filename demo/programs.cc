#include "programs.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "model.h"
#include "terminal.h"

namespace demo {
namespace {

double seconds_spent(const kvjit_engine_stats& stats) {
    return stats.compile_seconds + stats.disk_seconds + stats.bundle_seconds;
}

/// Seconds that the engine spent on preparing one program.
double prepare_one(const Kernels& kernels, const kvjit::Kernel& kernel, kvjit_programs bit) {
    const double before = seconds_spent(kernels.engine.stats());
    kernel.prepare(bit).value();
    return seconds_spent(kernels.engine.stats()) - before;
}

struct Program {
    const char* name;
    kvjit::Kernel Kernels::* kernel;
    kvjit_programs bit;
};

/// What the loop's calls run.
std::vector<Program> programs_of(Place place) {
    std::vector<Program> programs{{"store (both kernels share it)", &Kernels::store, KVJIT_PROGRAM_STORE},
                                  {"load (of KeyValueCache)", &Kernels::store, KVJIT_PROGRAM_LOAD},
                                  {"attend, few rows: decode", &Kernels::attention, KVJIT_PROGRAM_DECODE},
                                  {"attend, many rows: prefill", &Kernels::attention, KVJIT_PROGRAM_PREFILL}};
    if (place == Place::kCpu) programs.push_back({"merge of split keys", &Kernels::attention, KVJIT_PROGRAM_MERGE});
    return programs;
}

Kernels kernels_of(kvjit::Engine engine, const kvjit::Target& target) {
    kvjit::Kernel store_kernel = engine.kernel(Shape::spec(KVJIT_OP_KEY_VALUE_CACHE), target).value();
    kvjit::Kernel attention_kernel = engine.kernel(Shape::spec(KVJIT_OP_MULTI_HEAD_CACHE_ATTENTION), target).value();
    return {std::move(engine), std::move(store_kernel), std::move(attention_kernel)};
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
    return kernels_of(kvjit::Engine::create(options).value(), target);
}

Kernels open_bundle(const std::string& bundle, const kvjit::Target& target) {
    kvjit::EngineOptions options;
    options.cache_dir = "";
    options.jit = 0;
    kvjit::Engine engine = kvjit::Engine::create(options).value();
    engine.add_bundle(bundle).value();
    return kernels_of(std::move(engine), target);
}

ProgramTimes prepare_each(const Kernels& kernels, Place place) {
    ProgramTimes times{};
    for (const Program& program : programs_of(place)) {
        times.each.push_back(prepare_one(kernels, kernels.*program.kernel, program.bit));
    }
    kernels.attention.prepare(KVJIT_PROGRAM_STORE).value();  // the same program of another kernel: found in memory
    times.compiler_loading = kernels.engine.stats().compiler_load_seconds;
    return times;
}

void print_programs(const ProgramTimes& cold, const ProgramTimes& warm, Place place) {
    std::printf("%s\n", bold("Programs                          compiled     found on disk by the next start").c_str());
    const std::vector<Program> programs = programs_of(place);
    for (std::size_t i = 0; i < programs.size(); ++i) {
        std::printf("  %-30s %9.1f ms %12.2f ms\n", programs[i].name, cold.each[i] * 1e3, warm.each[i] * 1e3);
    }
    const char* opening = place == Place::kGpu ? "opening NVRTC, once a process" : "opening Clang, once a process";
    std::printf("  %-30s %9.1f ms %15s\n\n", opening, cold.compiler_loading * 1e3, "never");
}

void print_programs(const ProgramTimes& bundled, Place place) {
    std::printf("%s\n", bold("Programs                     in the bundle").c_str());
    const std::vector<Program> programs = programs_of(place);
    for (std::size_t i = 0; i < programs.size(); ++i) {
        std::printf("  %-30s %8.2f ms\n", programs[i].name, bundled.each[i] * 1e3);
    }
    std::printf("\n");
}

}  // namespace demo
