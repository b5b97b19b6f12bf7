#include <exception>
#include <list>
#include <stdexcept>

#include "bench/device.h"
#include "gpu_access.h"
#include "handles.h"
#include "limits/cuda/gpu.h"
#include "limits/cuda/loops.h"

namespace kvjit::tool {
namespace {

constexpr double kTimesL2 = 4;

/// What it throws becomes the error.
template <class F>
auto caught(const F& f) -> Result<decltype(f())> {
    try {
        return f();
    } catch (const std::exception& refused) {
        return fail(refused.what());
    }
}

class GpuMemory final : public DeviceMemory {
public:
    explicit GpuMemory(const gpu::Gpu& gpu) : gpu_(gpu) {}

    void* allocate(std::size_t bytes) override {
        if (bytes == 0) return nullptr;
        void* const made = pieces_.emplace_back(gpu_, bytes).data();
        gpu::set_on_device(made, 0, bytes);
        return made;
    }
    void repeat(std::span<std::byte> memory, std::span<const std::byte> pattern) override {
        gpu::repeat_on_device(memory.data(), memory.size(), pattern.data(), pattern.size());
    }
    Place place() override {
        return [this](const void* data, std::size_t bytes) {
            void* const made = allocate(bytes);
            if (bytes != 0) gpu::copy_to_device(made, data, bytes);
            return made;
        };
    }

private:
    const gpu::Gpu& gpu_;
    std::list<gpu::DeviceMemory> pieces_;
};

/// A graph, so that the host's launches don't keep the GPU waiting.
class CapturedWork final : public TimedWork {
public:
    CapturedWork(const gpu::Stream& stream, const Work& work)
        : stream_(stream), graph_(stream, [&] {
              if (auto done = work(); !done) throw std::runtime_error(done.error());
          }) {}
    Result<double> seconds() override {
        return caught([&] {
            start_.record(stream_);
            graph_.launch(stream_);
            end_.record(stream_);
            return 1e-6 * end_.microseconds_since(start_);
        });
    }

private:
    const gpu::Stream& stream_;
    gpu::Graph graph_;
    gpu::Event start_, end_;
};

class GpuDevice final : public Device {
public:
    /// The GPU outlives it. Throws std::runtime_error.
    explicit GpuDevice(const gpu::Gpu& gpu) : gpu_(gpu), loops_(gpu) {}

    std::string name() const override {
        return gpu_.name() + ", " + std::to_string(gpu_.attribute(gpu::kMultiprocessorCount)) + " multiprocessors";
    }
    std::string notes() const override {
        return "Limits: a loop that reads device memory (GB/s), and one of arithmetic (GFLOP/s): tensor cores "
               "multiply\n"
               "float16 by mma.sync, or float32 is multiplied and added. Times are between two events around calls "
               "that\n"
               "were captured into a graph, so that launches are back to back; the state of the clocks is unknown.\n";
    }
    double bytes_beyond_cache() const override { return kTimesL2 * gpu_.attribute(gpu::kL2CacheBytes); }
    Result<std::size_t> free_bytes() const override {
        return caught([&] { return gpu_.memory().free_bytes; });
    }

    std::unique_ptr<DeviceMemory> memory() const override { return std::make_unique<GpuMemory>(gpu_); }
    Machine machine(kvjit_engine* engine, const kvjit_target* target, DeviceMemory& memory) const override {
        return {engine, target, 0, true, stream_.get(), memory.place()};
    }
    Result<std::unique_ptr<TimedWork>> prepare(const Work& work) const override {
        return caught([&]() -> std::unique_ptr<TimedWork> { return std::make_unique<CapturedWork>(stream_, work); });
    }

    Result<double> read() override {
        return caught([&] { return loops_.read().measure(stream_); });
    }
    Result<double> multiply_add(kvjit_dtype t1) override {
        return caught([&] { return loop_for(t1).measure(stream_); });
    }
    std::string arithmetic(kvjit_dtype t1) const override { return t1 == KVJIT_F32 ? "multiply-add" : "tensor cores"; }

private:
    const limits::CudaLoop& loop_for(kvjit_dtype t1) const {
        return t1 == KVJIT_F32 ? loops_.multiply_add() : loops_.multiply_matrices();
    }

    const gpu::Gpu& gpu_;
    limits::CudaLoops loops_;
    gpu::Stream stream_;
};

/// "sm_90a" of a target's text.
Result<std::string> architecture(const std::string& target) {
    const auto made = open_target(target);
    if (!made) return fail(made.error());
    const std::string text = target_text(made->get());
    return text.substr(text.find(':') + 1);
}

/// Errors: an architecture that is not the GPU's.
Result<void> check_architecture(const std::string& target, int ordinal) {
    const auto wanted = architecture(target), own = architecture("cuda:" + std::to_string(ordinal));
    if (!wanted) return fail(wanted.error());
    if (!own) return fail(own.error());
    if (*wanted == *own) return {};
    return fail("--target is " + target + ", and the GPU is of " + *own + "; kvjit bench measures what runs on it");
}

}  // namespace

Result<std::unique_ptr<Device>> gpu_device(const std::string& target) {
    const std::optional<int> ordinal = gpu_ordinal(target);
    if (!ordinal) return fail("--target is " + target + ", which is no GPU: its times would say nothing of one");
    const auto gpu = find_gpu(*ordinal);
    if (!gpu) return fail(gpu.error());
    if (auto fits = check_architecture(target, *ordinal); !fits) return fail(fits.error());
    return caught([&]() -> std::unique_ptr<Device> { return std::make_unique<GpuDevice>(**gpu); });
}

}  // namespace kvjit::tool
