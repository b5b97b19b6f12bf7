#include "cuda/gpu_device.h"

#include <bit>

#include "cuda/transfer_streams.h"

namespace kvjit::rt {
namespace {

constexpr unsigned kPlainSharedBytes = 48 * 1024;  // what every kernel may use without opting in

cuda::Address address(const void* memory) {
    return reinterpret_cast<cuda::Address>(memory);
}

std::string launch_text(const Grid& grid) {
    return "launching a kernel on " + std::to_string(grid.x) + " x " + std::to_string(grid.y) + " blocks of " +
           std::to_string(grid.threads) + " threads and " + std::to_string(grid.shared_bytes) +
           " bytes of shared memory";
}

class GpuDevice final : public Device {
public:
    GpuDevice(const Driver& driver, GpuInfo gpu)
        : driver_(driver),
          api_(driver.api()),
          gpu_(std::move(gpu)),
          context_(driver, gpu_.device),
          transfers_(driver, context_) {}

    gen::Result<void> prepare_kernel(void* kernel, unsigned shared_bytes) override {
        const gen::Result<ContextScope> scope = context_.enter();
        if (!scope) return std::unexpected(scope.error());
        const RelaxedCapture relaxed(api_);
        if (const auto kept = context_.keep_if_primary(scope->context()); !kept) return std::unexpected(kept.error());
        auto* handle = static_cast<cuda::Kernel>(kernel);
        if (auto allowed = allow_shared_memory(handle, shared_bytes); !allowed) return allowed;
        return load(handle);
    }

    gen::Result<void> launch(void* kernel, const Grid& grid, const void* args, std::size_t, void* stream) override {
        if (grid.x == 0 || grid.y == 0) return {};
        const gen::Result<ContextScope> scope = context_.enter();
        if (!scope) return std::unexpected(scope.error());
        void* parameters[] = {const_cast<void*>(args)};  // the driver copies what the kernel declares
        const cuda::Code code =
            api_.launch_kernel(static_cast<cuda::Function>(kernel), grid.x, grid.y, 1, grid.threads, 1, 1,
                               grid.shared_bytes, static_cast<cuda::Stream>(stream), parameters, nullptr);
        if (code == cuda::kSuccess) return {};
        return std::unexpected(driver_.error(code, launch_text(grid)));
    }

    gen::Result<void*> allocate(std::size_t bytes) override {
        const gen::Result<ContextScope> scope = context_.enter();
        if (!scope) return std::unexpected(scope.error());
        const RelaxedCapture relaxed(api_);
        cuda::Address made = 0;
        const cuda::Code code = api_.memory_alloc(&made, bytes);
        if (code == cuda::kSuccess) return std::bit_cast<void*>(made);
        return std::unexpected(
            driver_.error(code, "allocating " + std::to_string(bytes) + " bytes on the GPU " + gpu_.name));
    }

    void release(void* memory) noexcept override {
        // If this fails, the context is broken or destroyed, and the memory with it.
        const gen::Result<ContextScope> scope = context_.enter();
        if (!scope) return;
        const RelaxedCapture relaxed(api_);
        api_.memory_free(address(memory));
    }

    gen::Result<void> upload(void* to, const void* from, std::size_t bytes, StreamOrder order) override {
        return transfer("copying to the GPU", order,
                        [&](cuda::Stream stream) { return api_.copy_to_device(address(to), from, bytes, stream); });
    }

    gen::Result<void> zero(void* to, std::size_t bytes, StreamOrder order) override {
        return transfer("zeroing memory of the GPU", order,
                        [&](cuda::Stream stream) { return api_.set_bytes(address(to), 0, bytes, stream); });
    }

    gen::Result<void> synchronize(void* stream) override {
        return wait_for(static_cast<cuda::Stream>(stream), [] { return cuda::kSuccess; });
    }

    gen::Result<void> download(void* to, const void* from, std::size_t bytes, void* stream) override {
        auto* queue = static_cast<cuda::Stream>(stream);
        return wait_for(queue, [&] { return api_.copy_to_host(to, address(from), bytes, queue); });
    }

    bool is_capturing(void* stream) override {
        const gen::Result<ContextScope> scope = context_.enter();
        bool capturing = false;
        // A stream that can't be asked can't be waited for, either.
        return !scope || ask_capturing(static_cast<cuda::Stream>(stream), capturing) != cuda::kSuccess || capturing;
    }

    int multiprocessors() const override { return gpu_.multiprocessors; }

private:
    /// Raises the kernel's limit to `bytes`, never lowers it: other plans may need more.
    gen::Result<void> allow_shared_memory(cuda::Kernel kernel, unsigned bytes) {
        if (bytes <= kPlainSharedBytes) return {};
        if (bytes > static_cast<unsigned>(gpu_.max_shared_bytes)) return too_much_shared_memory(bytes);
        const std::lock_guard lock(mutex_);
        constexpr auto kAttribute = cuda::kMaxDynamicSharedSizeBytes;
        int allowed = 0;
        cuda::Code code = api_.kernel_get_attribute(&allowed, kAttribute, kernel, gpu_.device);
        if (code == cuda::kSuccess && allowed < static_cast<int>(bytes)) {
            code = api_.kernel_set_attribute(kAttribute, static_cast<int>(bytes), kernel, gpu_.device);
        }
        return driver_.check(code, "asking for " + std::to_string(bytes) + " bytes of shared memory");
    }

    std::unexpected<gen::Error> too_much_shared_memory(unsigned bytes) const {
        return gen::fail(KVJIT_CUDA_ERROR, "shared_bytes",
                         "a kernel needs " + std::to_string(bytes) + " bytes of shared memory; a block on the GPU " +
                             gpu_.name + " has at most " + std::to_string(gpu_.max_shared_bytes),
                         bytes, gpu_.max_shared_bytes);
    }

    /// Brings the code to the GPU now: the driver would do so at the first launch, which may be within a capture.
    gen::Result<void> load(cuda::Kernel kernel) {
        cuda::Function function = nullptr;
        cuda::Code code = api_.kernel_get_function(&function, kernel);
        if (code == cuda::kSuccess && api_.function_load != nullptr) code = api_.function_load(function);
        return driver_.check(code, "loading a kernel to the GPU " + gpu_.name);
    }

    template <class Enqueue>
    gen::Result<void> transfer(std::string_view what, StreamOrder order, const Enqueue& enqueue) {
        const gen::Result<ContextScope> scope = context_.enter();
        if (!scope) return std::unexpected(scope.error());
        const RelaxedCapture relaxed(api_);
        if (!order) return transfers_.run(*scope, what, enqueue);
        auto* stream = static_cast<cuda::Stream>(*order);
        bool capturing = false;
        cuda::Code code = ask_capturing(stream, capturing);
        if (code == cuda::kSuccess && capturing) return transfers_.run(*scope, what, enqueue);
        if (code == cuda::kSuccess) code = enqueue(stream);
        return driver_.check(code, what);
    }

    cuda::Code ask_capturing(cuda::Stream stream, bool& capturing) {
        cuda::CaptureStatus status = cuda::kCaptureNone;
        const cuda::Code code = api_.stream_is_capturing(stream, &status);
        capturing = status != cuda::kCaptureNone;
        return code;
    }

    /// Enqueues, then waits for the stream; refuses a stream under capture, since waiting would break the capture.
    template <class Enqueue>
    gen::Result<void> wait_for(cuda::Stream stream, const Enqueue& enqueue) {
        const gen::Result<ContextScope> scope = context_.enter();
        if (!scope) return std::unexpected(scope.error());
        const RelaxedCapture relaxed(api_);  // another thread's capture must not affect this stream
        bool capturing = false;
        cuda::Code code = ask_capturing(stream, capturing);
        if (code == cuda::kSuccess && capturing) code = cuda::kStreamCaptureUnsupported;
        if (code == cuda::kSuccess) code = enqueue();
        if (code == cuda::kSuccess) code = api_.stream_synchronize(stream);
        return driver_.check(code, "waiting for a stream");
    }

    const Driver& driver_;
    const cuda::DriverApi& api_;
    const GpuInfo gpu_;
    GpuContext context_;
    TransferStreams transfers_;  // destroyed before the context, of which it may have a stream
    std::mutex mutex_;
};

}  // namespace

std::unique_ptr<Device> make_gpu_device(const Driver& driver, const GpuInfo& gpu) {
    return std::make_unique<GpuDevice>(driver, gpu);
}

}  // namespace kvjit::rt
