#include "cuda/gpu_info.h"

namespace kvjit::rt {
namespace {

constexpr int kOldestMajor = 8;         // cp.async and mma.m16n8k16
constexpr int kFirstSpecificMajor = 9;  // from here on "a" names what one architecture alone has

/// Reads the attributes in turn, up to the first error.
class Reader {
public:
    Reader(const Driver& driver, cuda::Device device) : api_(driver.api()), device_(device) {}

    int attribute(cuda::DeviceAttribute which) {
        int value = 0;
        if (code_ == cuda::kSuccess) code_ = api_.device_get_attribute(&value, which, device_);
        return value;
    }
    std::string name() {
        char text[256] = {};
        if (code_ == cuda::kSuccess) code_ = api_.device_get_name(text, sizeof text, device_);
        return text;
    }
    cuda::Code code() const { return code_; }

private:
    const cuda::DriverApi& api_;
    cuda::Device device_;
    cuda::Code code_ = cuda::kSuccess;
};

gen::Result<cuda::Device> device_of(const Driver& driver, int ordinal) {
    if (auto started = driver.initialise(); !started) return std::unexpected(started.error());
    int count = 0;
    cuda::Device device = 0;
    cuda::Code code = driver.api().device_get_count(&count);
    if (auto counted = driver.check(code, "counting GPUs"); !counted) return std::unexpected(counted.error());
    if (count == 0) return std::unexpected(driver.error(cuda::kNoDevice, "looking for a GPU"));
    if (ordinal < 0 || ordinal >= count) {
        return gen::fail(KVJIT_CUDA_ERROR, "target",
                         "GPU " + std::to_string(ordinal) + " is asked for; there are " + std::to_string(count) +
                             ", counted from 0 (CUDA_VISIBLE_DEVICES may hide some)",
                         ordinal, count - 1);
    }
    code = driver.api().device_get(&device, ordinal);
    if (auto found = driver.check(code, "looking for a GPU"); !found) return std::unexpected(found.error());
    return device;
}

}  // namespace

gen::Result<GpuInfo> find_gpu(const Driver& driver, int ordinal) {
    const gen::Result<cuda::Device> device = device_of(driver, ordinal);
    if (!device) return std::unexpected(device.error());
    Reader reader(driver, *device);
    GpuInfo gpu{*device,
                ordinal,
                reader.name(),
                reader.attribute(cuda::kComputeCapabilityMajor),
                reader.attribute(cuda::kComputeCapabilityMinor),
                reader.attribute(cuda::kMultiprocessorCount),
                reader.attribute(cuda::kMaxSharedMemoryPerBlockOptin)};
    if (auto read = driver.check(reader.code(), "asking what the GPU has"); !read) return std::unexpected(read.error());
    if (gpu.major >= kOldestMajor) return gpu;
    return gen::fail(KVJIT_CUDA_ERROR, "target",
                     "GPU " + std::to_string(ordinal) + " (" + gpu.name + ") has compute capability " +
                         std::to_string(gpu.major) + "." + std::to_string(gpu.minor) +
                         "; CUDA kernels need 8.0 or "
                         "newer (Ampere)",
                     gpu.major, kOldestMajor);
}

std::string device_target_name(const GpuInfo& gpu) {
    const std::string number = std::to_string(gpu.major) + std::to_string(gpu.minor);
    return "sm_" + number + (gpu.major >= kFirstSpecificMajor ? "a" : "");
}

}  // namespace kvjit::rt
