#include "cuda/driver.h"

namespace kvjit::rt {
namespace {

constexpr int kOldestVersion = 12000;  // cuLibraryLoadData and its kernels, which belong to no context

constexpr LibraryText kText = {
    KVJIT_CUDA_ERROR, "libcuda.so.1", "NVIDIA's driver",
    "CUDA targets need an NVIDIA GPU and its driver for CUDA 12.0 or newer (Debian: apt install nvidia-driver; in a "
    "container, pass the GPU in, as with docker run --gpus all)"};

struct Advice {
    cuda::Code first, last;
    const char* text;
};

constexpr const char* kFaulted =
    "a kernel of this context, kvjit's or another, went wrong, and the context can't be used any more; "
    "compute-sanitizer finds the place";
constexpr const char* kBroken =
    "the driver's libraries and its kernel module don't fit together: reinstall the driver or restart the machine";
constexpr const char* kCapturing =
    "a stream is being captured into a graph: only runs may go to it meanwhile, and nothing may wait for it";
constexpr const char* kOlderDriver =
    "the kernel was compiled for another GPU, or by an NVRTC that is newer than the driver: update the driver, or set "
    "KVJIT_NVRTC to the NVRTC of a CUDA that it supports";

constexpr Advice kAdvice[] = {
    {cuda::kStubLibrary, cuda::kStubLibrary,
     "what was opened is the CUDA toolkit's stub for linking, not a driver: take its folder (.../stubs) out of "
     "LD_LIBRARY_PATH"},
    {cuda::kCallRequiresNewerDriver, cuda::kCallRequiresNewerDriver, "update the driver"},
    {cuda::kDeviceUnavailable, cuda::kDeviceUnavailable,
     "another process has the GPU for itself (nvidia-smi -q -d COMPUTE)"},
    {cuda::kNoDevice, cuda::kNoDevice,
     "there is no GPU, or it is hidden: look at nvidia-smi and CUDA_VISIBLE_DEVICES; in a container, pass the GPU in"},
    {cuda::kInvalidDevice, cuda::kInvalidDevice, "look at nvidia-smi and CUDA_VISIBLE_DEVICES"},
    {cuda::kInvalidImage, cuda::kInvalidImage, kOlderDriver},
    {cuda::kInvalidContext, cuda::kInvalidContext, "the thread's current context was destroyed"},
    {cuda::kNoBinaryForGpu, cuda::kNoBinaryForGpu, kOlderDriver},
    {cuda::kUnsupportedPtxVersion, cuda::kUnsupportedPtxVersion, kOlderDriver},
    {cuda::kIllegalAddress, cuda::kIllegalAddress, kFaulted},
    {cuda::kHardwareStackError, cuda::kLaunchFailed, kFaulted},
    {cuda::kSystemNotReady, cuda::kCompatNotSupportedOnDevice, kBroken},
    {cuda::kStreamCaptureUnsupported, cuda::kStreamCaptureImplicit, kCapturing},
};

const char* advice(cuda::Code code) {
    for (const Advice& found : kAdvice) {
        if (found.first <= code && code <= found.last) return found.text;
    }
    return nullptr;
}

/// "CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected".
std::string describe(const cuda::DriverApi& api, cuda::Code code) {
    const char* name = nullptr;
    const char* sentence = nullptr;
    if (api.get_error_name(code, &name) != cuda::kSuccess || name == nullptr) name = "an error unknown to the driver";
    if (api.get_error_string(code, &sentence) != cuda::kSuccess) sentence = nullptr;
    std::string text = std::string(name) + " (" + std::to_string(code) + ")";
    if (sentence != nullptr) text += std::string(": ") + sentence;
    return text;
}

std::unexpected<gen::Error> too_old(int version) {
    return gen::fail(KVJIT_CUDA_ERROR, "libcuda.so.1",
                     "the NVIDIA driver supports CUDA " + cuda_version_text(version) + "; kvjit needs one for CUDA " +
                         cuda_version_text(kOldestVersion) + " or newer (driver 525 or newer): update the driver",
                     version, kOldestVersion);
}

std::span<const std::string> usual_places() {
    static const std::string places[] = {
        "libcuda.so.1",                          // found by the linker
        "/usr/local/nvidia/lib64/libcuda.so.1",  // containers whose host mounts the driver there
        "/usr/lib/wsl/lib/libcuda.so.1",         // Windows Subsystem for Linux
    };
    return places;
}

}  // namespace

std::string cuda_version_text(int version) {
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

gen::Result<Driver> Driver::open(std::span<const std::string> candidates) {
    const gen::Result<DynamicLibrary> library = DynamicLibrary::open(kText, candidates);
    if (!library) return std::unexpected(library.error());
    // An old driver lacks functions: an error with its version is clearer than one with the first missing name.
    constexpr Symbol<cuda::DriverApi> kFirst[] = {symbol<&cuda::DriverApi::driver_get_version>("cuDriverGetVersion")};
    Driver driver;
    if (auto filled = library->fill<cuda::DriverApi>(driver.api_, kFirst); !filled) {
        return std::unexpected(filled.error());
    }
    const bool known = driver.api_.driver_get_version(&driver.version_) == cuda::kSuccess;
    if (known && driver.version_ < kOldestVersion) return too_old(driver.version_);
    if (auto filled = library->fill(driver.api_, cuda::driver_symbols()); !filled) {
        return std::unexpected(filled.error());
    }
    return driver;
}

gen::Result<void> Driver::initialise() const {
    return check(api_.init(0), "starting the NVIDIA driver");
}

gen::Error Driver::error(cuda::Code code, std::string_view what) const {
    std::string message = std::string(what) + " failed: " + describe(api_, code);
    if (const char* text = advice(code)) message += std::string("; ") + text;
    if (version_ != 0) message += " (driver for CUDA " + cuda_version_text(version_) + ")";
    const kvjit_status status = code == cuda::kOutOfMemory ? KVJIT_OUT_OF_MEMORY : KVJIT_CUDA_ERROR;
    return {status, std::move(message), "CUDA", code, 0, -1};
}

const gen::Result<Driver>& shared_driver() {
    static const auto& driver = *new gen::Result<Driver>(Driver::open(usual_places()));
    return driver;
}

gen::Result<void> check_driver_for_nvrtc(const std::string& name) {
    const gen::Result<DynamicLibrary> library = DynamicLibrary::open(kText, {&name, 1});
    if (!library || library->find("cuInit") == nullptr || library->find("cuGetExportTable") != nullptr) return {};
    return gen::fail(
        KVJIT_CUDA_ERROR, "libcuda.so.1",
        library->path() +
            " is only a part of NVIDIA's driver: it has cuInit and no cuGetExportTable, which "
            "NVRTC would crash on; reinstall the driver, or take the file's folder out of LD_LIBRARY_PATH");
}

}  // namespace kvjit::rt
