#include "gpu/machine.h"

#include <cstring>
#include <new>

#include "limits/cuda/gpu.h"

namespace kvjit::test {
namespace {

constexpr std::align_val_t kAlignment{256};  // as the driver's

class HostMachine final : public Machine {
public:
    const std::string& target() const override { return target_; }
    void enter() const override {}
    void* allocate(std::size_t bytes) override { return ::operator new(bytes, kAlignment); }
    void release(void* memory) noexcept override { ::operator delete(memory, kAlignment); }
    void upload(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
    void download(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
    void finish() override {}
    void* make_stream() override { return nullptr; }
    void release_stream(void*) noexcept override {}
    std::optional<std::size_t> free_bytes() override { return std::nullopt; }

private:
    std::string target_ = "cuda-emulated";
};

class GpuMachine final : public Machine {
public:
    explicit GpuMachine(int ordinal) : gpu_(ordinal), target_(gpu_.target()) {}

    const gpu::Gpu& gpu() const { return gpu_; }
    const std::string& target() const override { return target_; }
    void enter() const override { gpu_.enter(); }

    void* allocate(std::size_t bytes) override {
        gpu::DevicePointer memory = 0;
        gpu::check(gpu::driver().memory_allocate(&memory, bytes), "cuMemAlloc");
        return reinterpret_cast<void*>(memory);
    }
    void release(void* memory) noexcept override {
        gpu::driver().memory_free(reinterpret_cast<gpu::DevicePointer>(memory));
    }
    void upload(void* to, const void* from, std::size_t bytes) override { gpu::copy_to_device(to, from, bytes); }
    void download(void* to, const void* from, std::size_t bytes) override { gpu::copy_to_host(to, from, bytes); }

    void finish() override { gpu_.synchronize(); }

    void* make_stream() override {
        void* stream = nullptr;
        gpu::check(gpu::driver().stream_create(&stream, gpu::kNonBlocking), "cuStreamCreate");
        return stream;
    }
    void release_stream(void* stream) noexcept override { gpu::driver().stream_destroy(stream); }

    std::optional<std::size_t> free_bytes() override {
        gpu_.synchronize();
        return gpu_.memory().free_bytes;
    }

private:
    gpu::Gpu gpu_;
    std::string target_;
};

}  // namespace

std::unique_ptr<Machine> make_host_machine() {
    return std::make_unique<HostMachine>();
}

std::unique_ptr<Machine> make_gpu_machine(int ordinal) {
    return std::make_unique<GpuMachine>(ordinal);
}

const gpu::Gpu& gpu_of_machine() {
    return dynamic_cast<const GpuMachine&>(machine()).gpu();
}

}  // namespace kvjit::test
