// Making kernels: a program's compile, and a cubin from disk.
#include <chrono>

#include "gpu/bench/setup.h"
#include "support/temporary_folder.h"

namespace kvjit::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kF16[] = "op=MultiHeadCacheAttention,head_dim=128,group=4,t1=f16,cache_mode=page_table,layout=L2HTD";
constexpr char kInt8[] =
    "op=MultiHeadCacheAttention,head_dim=128,group=4,t1=f16,quant_bit=8,cache_mode=page_table,layout=L2HTD";
constexpr char kLoad[] = "op=KeyValueCache,head_dim=128,t1=f16,quant_bit=8,cache_mode=page_table,layout=L2HTD";
constexpr char kDense[] = "op=MultiHeadAttention,head_dim=128,group=4,t1=f16";
constexpr char kMerge[] = "op=Merge,head_dim=128,t1=f16";

struct Program {
    const char* name;
    const char* spec;
    kvjit_programs bit;
};
constexpr Program kPrograms[] = {
    {"store, int8 pages", kInt8, KVJIT_PROGRAM_STORE},      {"check, int8 pages", kInt8, KVJIT_PROGRAM_CHECK},
    {"decode, f16 pages", kF16, KVJIT_PROGRAM_DECODE},      {"decode, int8 pages", kInt8, KVJIT_PROGRAM_DECODE},
    {"prefill, f16 packed", kDense, KVJIT_PROGRAM_PREFILL}, {"prefill, int8 pages", kInt8, KVJIT_PROGRAM_PREFILL},
    {"load, int8 pages", kLoad, KVJIT_PROGRAM_LOAD},        {"merge", kMerge, KVJIT_PROGRAM_MERGE},
};

double microseconds_since(Clock::time_point start) {
    return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

void add(const Setup& setup, const char* group, const char* what, const std::vector<double>& times) {
    setup.report.add({group, "", what, "kvjit", times, 0, 0, {}});
}

/// Loading the compiler is no part of the first compile's time; it is once a process.
void bench_compiles(const Setup& setup) {
    std::vector<double> times[std::size(kPrograms)];
    double load_seconds = 0;
    for (int round = 0; round < (setup.quick ? 1 : 5); ++round) {
        for (std::size_t i = 0; i < std::size(kPrograms); ++i) {
            const Engine engine = memory_engine();
            expect_done(kernel_for(setup, kPrograms[i].spec, engine).prepare(kPrograms[i].bit));
            times[i].push_back(1e6 * engine.stats().compile_seconds);
            load_seconds = std::max(load_seconds, engine.stats().compiler_load_seconds);
        }
    }
    for (std::size_t i = 0; i < std::size(kPrograms); ++i) add(setup, "compile", kPrograms[i].name, times[i]);
    add(setup, "compile", "opening NVRTC, once", {1e6 * load_seconds});
}

Engine disk_engine(const test::TemporaryFolder& folder) {
    EngineOptions options;
    options.cache_dir = folder.path().c_str();
    return value_of(Engine::create(options));
}

/// A new engine each time, as in a new process.
void bench_disk(const Setup& setup, const Program& program) {
    const test::TemporaryFolder folder;
    expect_done(kernel_for(setup, program.spec, disk_engine(folder)).prepare(program.bit));
    std::vector<double> times;
    for (int round = 0; round < 9; ++round) {
        const Engine engine = disk_engine(folder);
        const auto start = Clock::now();
        expect_done(kernel_for(setup, program.spec, engine).prepare(program.bit));
        times.push_back(microseconds_since(start));
        if (engine.stats().disk_hits != 1) throw std::runtime_error("the disk cache did not serve the program");
    }
    add(setup, "disk hit", program.name, times);
}

}  // namespace

void bench_making(const Setup& setup) {
    bench_compiles(setup);
    for (const Program& program : kPrograms) bench_disk(setup, program);
}

}  // namespace kvjit::bench
