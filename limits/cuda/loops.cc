#include "limits/cuda/loops.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace kvjit::limits {
namespace {

constexpr unsigned kBlocksEach = 4;  // of a multiprocessor: what every one since sm_80 has registers for
constexpr double kTimesL2 = 4;       // memory that is read is this much larger than L2
constexpr double kLeastSeconds = 1e-3;
constexpr std::uint32_t kMostRounds = 1 << 24;

/// float16 numbers from 0.25 to 0.5 of both signs, whose bits have no pattern.
std::vector<std::uint16_t> drawn_halves() {
    std::vector<std::uint16_t> halves(1 << 16);
    std::uint32_t state = 1;
    for (std::uint16_t& half : halves) {
        state = state * 1664525U + 1013904223U;
        half = static_cast<std::uint16_t>(0x3400U | (state >> 16 & 0x83ffU));
    }
    return halves;
}

gpu::DeviceMemory drawn_memory(const gpu::Gpu& gpu, std::size_t bytes) {
    const std::vector<std::uint16_t> halves = drawn_halves();
    gpu::DeviceMemory memory(gpu, bytes);
    gpu::repeat_on_device(memory.data(), bytes, halves.data(), halves.size() * sizeof halves[0]);
    return memory;
}

unsigned blocks_for(const gpu::Gpu& gpu) {
    return kBlocksEach * static_cast<unsigned>(gpu.attribute(gpu::kMultiprocessorCount));
}

/// That the whole grid reads in a turn.
std::size_t turn_bytes(unsigned blocks) {
    return std::size_t{blocks} * kLoopThreads * kLoads * kLoadBytes;
}

std::uint32_t turns_for(const gpu::Gpu& gpu, unsigned blocks) {
    const double bytes = kTimesL2 * gpu.attribute(gpu::kL2CacheBytes);
    return static_cast<std::uint32_t>(std::ceil(bytes / static_cast<double>(turn_bytes(blocks))));
}

/// Of a round of the whole grid.
double multiply_add_operations(unsigned blocks) {
    return 2.0 * blocks * kLoopThreads * kChains * kLinks;
}
double matrices_operations(unsigned blocks) {
    return 2.0 * 16 * 8 * 16 * blocks * (kLoopThreads / 32.0) * kMatrixChains * kMatrixLinks;
}

}  // namespace

CudaLoop::CudaLoop(void* kernel, unsigned blocks, const LoopParameters& parameters, double work_each_round)
    : kernel_(kernel), blocks_(blocks), parameters_(parameters), work_each_round_(work_each_round) {
    choose_rounds();
}

void CudaLoop::enqueue(const gpu::Stream& stream) const {
    LoopParameters parameters = parameters_;
    void* pointers[] = {&parameters};
    gpu::check(
        gpu::driver().launch_kernel(kernel_, blocks_, 1, 1, kLoopThreads, 1, 1, 0, stream.get(), pointers, nullptr),
        "cuLaunchKernel");
}

double CudaLoop::seconds(const gpu::Stream& stream) const {
    const gpu::Event start, end;
    start.record(stream);
    enqueue(stream);
    end.record(stream);
    return 1e-6 * end.microseconds_since(start);
}

double CudaLoop::measure(const gpu::Stream& stream) const {
    return work() / seconds(stream);
}

/// As many more as are missing by the time of those so far, of which the first ones are the slowest.
void CudaLoop::choose_rounds() {
    const gpu::Stream stream;
    for (double taken = seconds(stream); taken < kLeastSeconds && parameters_.rounds < kMostRounds;
         taken = seconds(stream)) {
        const double times = std::clamp(1.25 * kLeastSeconds / taken, 2.0, 16.0);
        parameters_.rounds = static_cast<std::uint32_t>(times * parameters_.rounds);
    }
}

CudaLoops::CudaLoops(const gpu::Gpu& gpu)
    : blocks_(blocks_for(gpu)),
      turns_(turns_for(gpu, blocks_)),
      library_(loops_ptx()),
      memory_(drawn_memory(gpu, turns_ * turn_bytes(blocks_))),
      sums_(gpu, std::size_t{blocks_} * kLoopThreads * sizeof(float)),
      read_(library_.kernel(kReadKernel), blocks_, parameters(), static_cast<double>(memory_.size())),
      multiply_add_(library_.kernel(kMultiplyAddKernel), blocks_, parameters(), multiply_add_operations(blocks_)),
      multiply_matrices_(library_.kernel(kMatricesKernel), blocks_, parameters(), matrices_operations(blocks_)) {}

LoopParameters CudaLoops::parameters() const {
    return {.memory = reinterpret_cast<std::uint64_t>(memory_.data()),
            .sums = reinterpret_cast<std::uint64_t>(sums_.data()),
            .rounds = 1,
            .turns = turns_,
            .factor = 0.5F,
            .term = 1};
}

}  // namespace kvjit::limits
