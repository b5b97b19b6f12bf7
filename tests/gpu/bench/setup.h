// What the GPU benchmarks share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gpu/bench/contest.h"
#include "gpu/bench/report.h"
#include "kvjit/kvjit.hpp"
#include "limits/cuda/gpu.h"

namespace kvjit::bench {

struct Setup {
    const gpu::Gpu& gpu;
    const std::string& target;  // the GPU's, as kvjit_target_create takes it
    const gpu::Stream& stream;
    const limits::CudaLoops& limits;
    Report& report;
    bool quick;
    int rounds() const { return quick ? 3 : 9; }
};

void bench_decode(const Setup& setup);
void bench_prefill(const Setup& setup);
/// Compiling, loading from disk.
void bench_making(const Setup& setup);
/// What a run costs the host.
void bench_launch(const Setup& setup);

/// Throws std::runtime_error with kvjit's message.
template <class T>
T value_of(Result<T> result) {
    if (!result) throw std::runtime_error(result.error().message());
    return *std::move(result);
}
inline void expect_done(const Result<void>& result) {
    if (!result) throw std::runtime_error(result.error().message());
}

/// In memory only.
Engine memory_engine();
/// One a process, in memory only.
const Engine& shared_engine();
Kernel kernel_for(const Setup& setup, const std::string& spec, const Engine& engine = shared_engine());
/// A plan on the setup's stream; fails if it can't be made.
Plan plan_for(const Setup& setup, const std::string& spec, const kvjit_batch& batch,
              kvjit_check_level level = KVJIT_CHECK_NONE);

/// Float16 numbers with mean 0 and deviation `deviation` in all of `memory`, over and over.
void fill_normal(const gpu::DeviceMemory& memory, double deviation);
gpu::DeviceMemory normal_halves(const gpu::Gpu& gpu, std::size_t bytes, double deviation = 1);
/// Memory of a GPU in pieces, for arrays and tensors that call/ makes. They stay where they are.
class DevicePieces {
public:
    explicit DevicePieces(const gpu::Gpu& gpu) : gpu_(gpu) {}
    /// Where these bytes are copied to.
    const void* put(const void* data, std::size_t bytes);
    /// Where float16 numbers with mean 0 and deviation 1 lie.
    void* take_normal(std::size_t bytes);

private:
    const gpu::Gpu& gpu_;
    std::vector<gpu::DeviceMemory> pieces_;
};

/// Integers, as Index.
template <class Index>
gpu::DeviceMemory indices(const gpu::Gpu& gpu, const std::vector<std::int64_t>& values) {
    const std::vector<Index> typed(values.begin(), values.end());
    gpu::DeviceMemory memory(gpu, typed.size() * sizeof(Index));
    gpu::copy_to_device(memory.data(), typed.data(), memory.size());
    return memory;
}
/// first, first + step, ...
std::vector<std::int64_t> arithmetic(std::int64_t count, std::int64_t first, std::int64_t step);

/// Runs `work`; what it throws becomes a failure of the report, so that the rest is measured all the same.
template <class Work>
bool attempt(const Setup& setup, const std::string& what, const Work& work) {
    try {
        work();
        return true;
    } catch (const std::exception& error) {
        setup.report.fail(what, error.what());
        return false;
    }
}

/// Whether `bytes` more fit into the device's memory, with some left for others. If not, the report says so of `what`.
bool fits(const Setup& setup, const std::string& what, double bytes);

}  // namespace kvjit::bench
