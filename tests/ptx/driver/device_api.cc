// Of the CUDA driver API: errors, the device, its contexts.
#include <cstdio>

#include "ptx/driver/device.h"

using namespace kvjit::ptx;
namespace cuda = kvjit::rt::cuda;

namespace {

struct Name {
    int code;
    const char* name;
    const char* text;
};

constexpr Name kNames[] = {
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {401, "CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"},
};

const Name* find(int code) {
    for (const Name& name : kNames) {
        if (name.code == code) return &name;
    }
    return nullptr;
}

int value_of(int attribute) {
    constexpr int kL2CacheBytes = 38;
    const Options& options = Device::get().options();
    switch (attribute) {
        case cuda::kMultiprocessorCount:
            return options.multiprocessors;
        case cuda::kComputeCapabilityMajor:
            return options.major;
        case cuda::kComputeCapabilityMinor:
            return options.minor;
        case cuda::kMaxSharedMemoryPerBlockOptin:
            return options.shared_bytes();
        case kL2CacheBytes:
            return 1 << 20;
        default:
            return -1;
    }
}

void* primary_context() {
    static char context;
    return &context;
}

std::atomic<int> retained = 0;

}  // namespace

KVJIT_PTX_EXPORT Code cuGetErrorName(Code code, const char** name) {
    const Name* found = find(code);
    *name = found != nullptr ? found->name : nullptr;
    return found != nullptr ? cuda::kSuccess : kInvalidValue;
}
KVJIT_PTX_EXPORT Code cuGetErrorString(Code code, const char** text) {
    const Name* found = find(code);
    const char* noted = Device::get().noted(code);
    *text = noted != nullptr ? noted : found != nullptr ? found->text : nullptr;
    return *text != nullptr ? cuda::kSuccess : kInvalidValue;
}
KVJIT_PTX_EXPORT Code cuDriverGetVersion(int* version) {
    *version = 13000;
    return cuda::kSuccess;
}
/// NVRTC asks for tables of its own, and takes a no.
KVJIT_PTX_EXPORT Code cuGetExportTable(const void**, const void*) {
    return cuda::kNotFound;
}

KVJIT_PTX_EXPORT Code cuInit(unsigned) {
    return cuda::kSuccess;
}
KVJIT_PTX_EXPORT Code cuDeviceGetCount(int* count) {
    *count = 1;
    return cuda::kSuccess;
}
KVJIT_PTX_EXPORT Code cuDeviceGet(cuda::Device* device, int ordinal) {
    *device = 0;
    return ordinal == 0 ? cuda::kSuccess : cuda::kInvalidDevice;
}
KVJIT_PTX_EXPORT Code cuDeviceGetName(char* name, int bytes, cuda::Device) {
    const Options& options = Device::get().options();
    std::snprintf(name, static_cast<std::size_t>(bytes), "PTX interpreter of compute capability %d.%d", options.major,
                  options.minor);
    return cuda::kSuccess;
}
KVJIT_PTX_EXPORT Code cuDeviceGetAttribute(int* value, int attribute, cuda::Device) {
    *value = value_of(attribute);
    return *value < 0 ? kInvalidValue : cuda::kSuccess;
}

KVJIT_PTX_EXPORT Code cuDevicePrimaryCtxGetState(cuda::Device, unsigned* flags, int* active) {
    *flags = 0;
    *active = retained > 0;
    return cuda::kSuccess;
}
KVJIT_PTX_EXPORT Code cuDevicePrimaryCtxRetain(void** context, cuda::Device) {
    if (const Code code = Device::get().refuse_in_capture(); code != cuda::kSuccess) return code;
    ++retained;
    *context = primary_context();
    return cuda::kSuccess;
}
KVJIT_PTX_EXPORT Code cuDevicePrimaryCtxRelease_v2(cuda::Device) {
    --retained;
    return cuda::kSuccess;
}
KVJIT_PTX_EXPORT Code cuCtxGetCurrent(void** context) {
    *context = contexts().empty() ? nullptr : contexts().back();
    return cuda::kSuccess;
}
KVJIT_PTX_EXPORT Code cuCtxSetCurrent(void* context) {
    if (!contexts().empty()) contexts().pop_back();
    if (context != nullptr) contexts().push_back(context);
    return cuda::kSuccess;
}
KVJIT_PTX_EXPORT Code cuCtxGetDevice(cuda::Device* device) {
    *device = 0;
    return contexts().empty() ? cuda::kInvalidContext : cuda::kSuccess;
}
KVJIT_PTX_EXPORT Code cuCtxPushCurrent_v2(void* context) {
    contexts().push_back(context);
    return cuda::kSuccess;
}
KVJIT_PTX_EXPORT Code cuCtxPopCurrent_v2(void** context) {
    if (contexts().empty()) return cuda::kInvalidContext;
    *context = contexts().back();
    contexts().pop_back();
    return cuda::kSuccess;
}
KVJIT_PTX_EXPORT Code cuCtxSynchronize() {
    if (const Code code = Device::get().refuse_in_capture(); code != cuda::kSuccess) return code;
    return Device::get().wait_for_all();
}
