// libkvjit_emulation: CUDA kernels on this machine's CPU, slow and checked, for tests and kernel authors without a GPU.
//
// A kernel is the same text that NVRTC gets, compiled by Clang with templates/cuda/machine/emulated.h. Blocks run
// one after the other, a block's threads as fibers.
#include "emulation/plugin.h"

#include <cstdio>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "emulation/multiprocessor.h"

using kvjit::emulation::Multiprocessor;

struct kvjit_emulator {
    const std::uint64_t seed;
    const kvjit::emulation::Lines lines;
    std::mutex mutex;  // guards what follows
    std::vector<std::unique_ptr<Multiprocessor>> idle;
};

namespace kvjit::emulation {
namespace {

constexpr unsigned kMaxGridX = 0x7fffffff;
constexpr unsigned kMaxGridY = 0xffff;

struct Limit {
    const char* name;
    std::size_t value, limit;
};

gen::Result<void> check_launch(const Launch& launch) {
    const Limit limits[] = {
        {"grid.x", launch.x, kMaxGridX},
        {"grid.y", launch.y, kMaxGridY},
        {"grid.threads", launch.threads, kMaxThreads},
        {"grid.shared_bytes", launch.shared_bytes, SharedMemory::kMostBytes},
        {"args_bytes", launch.args_bytes, kMaxArgumentBytes},
    };
    for (const Limit& l : limits) {
        if (l.value <= l.limit) continue;
        return gen::fail(
            KVJIT_CUDA_ERROR, l.name,
            std::string(l.name) + " is " + std::to_string(l.value) + "; it may be up to " + std::to_string(l.limit),
            static_cast<std::int64_t>(l.value), static_cast<std::int64_t>(l.limit));
    }
    if (launch.threads > 0 && launch.threads % kWarpLanes == 0) return {};
    return gen::fail(KVJIT_CUDA_ERROR, "grid.threads",
                     "grid.threads is " + std::to_string(launch.threads) + "; it is a multiple of 32", launch.threads,
                     32);
}

// Stacks and shared memory stay mapped between launches.
std::unique_ptr<Multiprocessor> take(kvjit_emulator& emulator) {
    const std::lock_guard lock(emulator.mutex);
    if (emulator.idle.empty()) return std::make_unique<Multiprocessor>(emulator.seed, emulator.lines);
    std::unique_ptr<Multiprocessor> last = std::move(emulator.idle.back());
    emulator.idle.pop_back();
    return last;
}

void give_back(kvjit_emulator& emulator, std::unique_ptr<Multiprocessor> processor) {
    const std::lock_guard lock(emulator.mutex);
    emulator.idle.push_back(std::move(processor));
}

gen::Result<void> run(kvjit_emulator& emulator, const Launch& launch) {
    if (launch.x == 0 || launch.y == 0) return {};
    if (auto legal = check_launch(launch); !legal) return legal;
    std::unique_ptr<Multiprocessor> processor = take(emulator);
    auto result = processor->launch(launch);
    give_back(emulator, std::move(processor));
    return result;
}

kvjit_status report(kvjit_error& error, kvjit_status status, const char* argument, const char* message,
                    std::int64_t value = 0, std::int64_t limit = 0) {
    error = {sizeof error, status, value, limit, -1, {}, {}};
    std::snprintf(error.argument, sizeof error.argument, "%s", argument);
    std::snprintf(error.message, sizeof error.message, "%s", message);
    return status;
}

kvjit_emulator* create(uint64_t seed, kvjit_emulation_line line, void* context) {
    return new (std::nothrow) kvjit_emulator{seed, {line, context}, {}, {}};
}

void destroy(kvjit_emulator* emulator) {
    delete emulator;
}

kvjit_status launch(kvjit_emulator* emulator, const Launch* launch, kvjit_error* error) {
    try {
        const auto done = run(*emulator, *launch);
        if (done) return KVJIT_OK;
        const gen::Error& e = done.error();
        return report(*error, e.status, e.argument.c_str(), e.message.c_str(), e.value, e.limit);
    } catch (const std::bad_alloc&) {
        return report(*error, KVJIT_OUT_OF_MEMORY, "memory", "no memory for emulating CUDA");
    }
}

}  // namespace
}  // namespace kvjit::emulation

extern "C" __attribute__((visibility("default"))) const kvjit_emulation_functions kvjit_emulation_1 = {
    kvjit::emulation::create,
    kvjit::emulation::destroy,
    kvjit::emulation::launch,
};
