#include "machine.h"

#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "bandwidth.h"
#include "gpu.h"
#include "must.h"

namespace demo {
namespace {

constexpr std::size_t kReadBytes = std::size_t{512} << 20;
constexpr int kMeasurements = 4;  // the best counts

std::string processor_name() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
    }
    return "unknown processor";
}

class CpuMachine final : public Machine {
public:
    explicit CpuMachine(int threads) : threads_(threads) {}

    std::string headline() const override {
        return processor_name() + ", " + std::to_string(threads_) + " threads, last-level cache " +
               std::to_string(last_level_cache_bytes() >> 20) + " MB";
    }
    Memory& memory() override { return memory_; }

    Yardstick measure() override {
        ReadLoop loop(kReadBytes, threads_);
        double best = 0;
        for (int i = 0; i < kMeasurements; ++i) best = std::max(best, loop.measure());
        return {"the machine", "reads", "a loop that only reads", best};
    }

private:
    int threads_;
    HostMemory memory_;
};

class GpuMachine final : public Machine {
public:
    explicit GpuMachine(int ordinal) : gpu_(ordinal) {}

    std::string headline() const override { return gpu_.headline(); }
    Memory& memory() override { return gpu_; }

    Yardstick measure() override {
        double best = 0;
        for (int i = 0; i < kMeasurements; ++i) best = std::max(best, gpu_.measure_copies());
        return {"the GPU", "copies", "copies within its memory, reads and writes counted", best};
    }

private:
    Gpu gpu_;
};

class EmulatedMachine final : public Machine {
public:
    std::string headline() const override {
        return processor_name() + ", emulating a GPU: little work, which takes thousands of times longer";
    }
    Memory& memory() override { return memory_; }
    Yardstick measure() override { return {"the emulator", "reads", "its times say nothing of a GPU", 0}; }

private:
    HostMemory memory_;
};

kvjit::Target open_gpu_target(int ordinal) {
    auto target = kvjit::Target::cuda_device(ordinal);
    if (target) return *std::move(target);
    throw std::runtime_error(std::string(target.error().message()) + "; --target cuda-emulated needs no GPU");
}

}  // namespace

kvjit::Target open_target(const Options& options) {
    if (options.place == Place::kGpu) return open_gpu_target(options.gpu);
    if (options.place == Place::kEmulated) return must(kvjit::Target::cuda_emulated());
    return must(options.target == "host" ? kvjit::Target::host() : kvjit::Target::cpu(options.target));
}

std::unique_ptr<Machine> open_machine(const Options& options) {
    switch (options.place) {
        case Place::kGpu:
            return std::make_unique<GpuMachine>(options.gpu);
        case Place::kEmulated:
            return std::make_unique<EmulatedMachine>();
        case Place::kCpu:
            break;
    }
    return std::make_unique<CpuMachine>(options.threads);
}

}  // namespace demo
