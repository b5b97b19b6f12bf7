#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <vector>

#include "available_memory.h"
#include "bench/device.h"
#include "calls/tensors.h"
#include "limits/arithmetic.h"
#include "limits/bandwidth.h"
#include "limits/together.h"
#include "processor.h"

namespace kvjit::tool {
namespace {

constexpr std::size_t kPage = 4096;
constexpr double kTimesCache = 4, kLeastBytes = 128e6;
constexpr std::size_t kLeastRead = std::size_t{256} << 20;

/// As engines' is: touched.
class HostMemory final : public DeviceMemory {
public:
    void* allocate(std::size_t bytes) override {
        const std::size_t whole = (bytes / kPage + 1) * kPage;
        void* const made = std::aligned_alloc(kPage, whole);
        if (made == nullptr) throw std::bad_alloc();
        pieces_.emplace_back(made);
        return std::memset(made, 0, whole);
    }
    void repeat(std::span<std::byte> memory, std::span<const std::byte> pattern) override {
        calls::repeat_in_host_memory(memory, pattern);
    }
    Place place() override { return {}; }

private:
    struct Free {
        void operator()(void* memory) const { std::free(memory); }
    };
    std::vector<std::unique_ptr<void, Free>> pieces_;
};

class ClockedWork final : public TimedWork {
public:
    explicit ClockedWork(Work work) : work_(std::move(work)) {}
    Result<double> seconds() override {
        const auto start = std::chrono::steady_clock::now();
        if (auto done = work_(); !done) return fail(done.error());
        const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
        limits::wait_for_idle_pool();  // for what is measured next
        return taken.count();
    }

private:
    Work work_;
};

class CpuDevice final : public Device {
public:
    explicit CpuDevice(int threads) : threads_(threads) {}

    std::string name() const override {
        const std::string name = processor_name();
        return (name.empty() ? "unknown processor" : name) + ", " + std::to_string(threads_) +
               (threads_ == 1 ? " thread" : " threads");
    }
    std::string notes() const override {
        return "Limits: a loop that reads memory (GB/s), one that multiplies and adds float32 (GFLOP/s).\n";
    }
    double bytes_beyond_cache() const override {
        return std::max(kLeastBytes, kTimesCache * static_cast<double>(limits::last_level_cache_bytes()));
    }
    Result<std::size_t> free_bytes() const override { return available_memory(); }

    std::unique_ptr<DeviceMemory> memory() const override { return std::make_unique<HostMemory>(); }
    Machine machine(kvjit_engine* engine, const kvjit_target* target, DeviceMemory&) const override {
        return {engine, target, static_cast<std::uint32_t>(threads_), false};
    }
    Result<std::unique_ptr<TimedWork>> prepare(const Work& work) const override {
        return std::make_unique<ClockedWork>(work);
    }

    Result<double> read() override {
        const std::size_t bytes = std::max(kLeastRead, 2 * limits::last_level_cache_bytes());
        if (!loop_) loop_.emplace(bytes, threads_);
        return loop_->measure(limits::ReadWay::kPrefetched);
    }
    Result<double> multiply_add(kvjit_dtype) override { return limits::measure_arithmetic(threads_); }
    std::string arithmetic(kvjit_dtype) const override { return "multiply-add"; }

private:
    int threads_;
    std::optional<limits::ReadLoop> loop_;
};

}  // namespace

std::unique_ptr<Device> cpu_device(int threads) {
    const int cores = limits::usable_cores();
    return std::make_unique<CpuDevice>(threads == 0 ? cores : std::min(threads, cores));
}

}  // namespace kvjit::tool
