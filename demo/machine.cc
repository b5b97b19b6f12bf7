#include "machine.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <utility>

#include "gpu.h"
#include "limits/arithmetic.h"
#include "limits/bandwidth.h"
#include "limits/together.h"

namespace demo {
namespace {

constexpr std::size_t kReadBytes = std::size_t{512} << 20;
constexpr int kMeasurements = 3;  // the best counts

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
        return processor_name() + ", " + threads_text() + ", last-level cache " +
               std::to_string(kvjit::limits::last_level_cache_bytes() >> 20) + " MB";
    }
    Memory& memory() override { return memory_; }

    Yardstick measure() override {
        if (!read_loop_) read_loop_.emplace(kReadBytes, threads_);
        kvjit::limits::wait_for_idle_pool();
        Yardstick best{};
        for (int i = 0; i < kMeasurements; ++i) {
            best.bytes_a_second = std::max(best.bytes_a_second, read_loop_->measure());
            best.operations_a_second = std::max(best.operations_a_second, kvjit::limits::measure_arithmetic(threads_));
        }
        return best;
    }
    std::string explanation() const override {
        return "Limits, right before the programs: a loop that only reads memory; one that only multiplies and adds\n"
               "  float32 numbers in registers; both on " +
               threads_text() + ".";
    }

private:
    std::string threads_text() const { return std::to_string(threads_) + (threads_ == 1 ? " thread" : " threads"); }

    int threads_;
    HostMemory memory_;
    std::optional<kvjit::limits::ReadLoop> read_loop_;
};

class GpuMachine final : public Machine {
public:
    explicit GpuMachine(int ordinal) : gpu_(ordinal) {}

    std::string headline() const override { return gpu_.headline(); }
    Memory& memory() override { return gpu_; }

    Yardstick measure() override {
        double best = 0;
        for (int i = 0; i < kMeasurements; ++i) best = std::max(best, gpu_.measure_copies());
        return {best, 0};
    }
    std::string explanation() const override {
        return "Limit, right before the programs: copies within the GPU's memory, bytes read and written.";
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
    Yardstick measure() override { return {}; }
    std::string explanation() const override { return "They are times of an emulation, and say nothing of a GPU."; }

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
    if (options.place == Place::kEmulated) return kvjit::Target::cuda_emulated().value();
    return (options.target == "host" ? kvjit::Target::host() : kvjit::Target::cpu(options.target)).value();
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
