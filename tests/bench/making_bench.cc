// Getting at a kernel: compiled, from disk, from memory, in a process that has just been started.
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>

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
    if (auto done = kernel->prepare(KVJIT_STORE | KVJIT_DECODE); !done) return done.error();
    return engine->stats();
}

/// A line of /proc/self/status in bytes: "VmRSS:", "VmHWM:".
double memory_bytes(const std::string& name) {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
        double kilobytes = 0;
        if (word == name && status >> kilobytes) return kilobytes * 1024;
    }
    return 0;
}

/// Makes VmHWM begin again at what is resident now.
void forget_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

Result<void> compile_decode(double& compile_seconds, double& load_seconds) {
    const auto engine = engine_over("");
    if (!engine) return engine.error();
    const auto kernel = engine->kernel(*KernelSpec::parse(kFirstCallSpec));
    if (!kernel) return kernel.error();
    if (auto done = kernel->prepare(KVJIT_DECODE); !done) return done;
    compile_seconds += engine->stats().compile_seconds;
    load_seconds += engine->stats().compiler_load_seconds;
    return {};
}

/// Clang's first compile in a process also opens it and touches its pages for the first time: taken once, apart.
void BM_compile_decode(benchmark::State& state) {
    using Clock = std::chrono::steady_clock;
    double ignored = 0, loading = 0, compiling = 0;
    static const auto before = Clock::now();
    static const bool warm = compile_decode(ignored, loading).has_value();
    static const std::chrono::duration<double, std::milli> first = Clock::now() - before;
    static const double loading_ms = loading * 1e3;
    if (!warm) return state.SkipWithError("the first compile failed");
    for (auto _ : state) {
        if (failed(state, compile_decode(compiling, loading))) return;
    }
    forget_peak();
    const double resident = memory_bytes("VmRSS:");
    if (failed(state, compile_decode(ignored, loading))) return;
    state.counters["compile_ms"] = 1e3 * compiling / static_cast<double>(state.iterations());
    state.counters["first_in_process_ms"] = first.count();
    state.counters["opening_clang_ms"] = loading_ms;
    state.counters["peak_rss_growth_MB"] = (memory_bytes("VmHWM:") - resident) / 1e6;
}
BENCHMARK(BM_compile_decode)->Unit(benchmark::kMillisecond)->UseRealTime()->MinTime(2);

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

struct ChildResult {
    double seconds = 0;  // from before the start of the process to the end of its first call
    double resident_bytes = 0;
};

/// Starts first_call.cc's program and reads what it says. 0 seconds: it failed.
ChildResult start_child() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return {};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    std::string program = KVJIT_FIRST_CALL, folder = scratch_folder(), now = std::to_string(monotonic_nanoseconds());
    char* const arguments[] = {program.data(), folder.data(), now.data(), nullptr};
    pid_t child = 0;
    const bool started = posix_spawn(&child, program.c_str(), &actions, nullptr, arguments, environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    char text[64] = {};
    if (started) static_cast<void>(!::read(ends[0], text, sizeof text - 1));
    ::close(ends[0]);
    rusage usage{};
    int status = -1;
    if (!started || ::wait4(child, &status, 0, &usage) != child || status != 0) return {};
    return {std::strtod(text, nullptr) * 1e-9, static_cast<double>(usage.ru_maxrss) * 1024};
}

/// From exec to the end of the first call, kernels on disk.
void BM_exec_to_first_call(benchmark::State& state) {
    if (failed(state, decode_ready(scratch_folder()))) return;
    double resident = 0;
    for (auto _ : state) {
        const ChildResult child = start_child();
        if (child.seconds <= 0) return state.SkipWithError("the child process failed");
        state.SetIterationTime(child.seconds);
        resident = child.resident_bytes;
    }
    state.counters["peak_rss_MB"] = resident / 1e6;
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
