// Errors, GPUs and contexts.
#include <cstdio>

#include "fake_state.h"

using namespace kvjit::test;
using cuda::Code;

namespace {

struct Name {
    int code;
    const char* name;
    const char* text;
};

constexpr Name kNames[] = {
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {34, "CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the provided PTX was compiled with an unsupported toolchain."},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "system has unsupported display driver / cuda driver combination"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
};

const Name* find(int code) {
    for (const Name& name : kNames) {
        if (name.code == code) return &name;
    }
    return nullptr;
}

int attribute(const FakeCuda& state, cuda::DeviceAttribute which) {
    switch (which) {
        case cuda::kMultiprocessorCount:
            return 132;
        case cuda::kComputeCapabilityMajor:
            return state.major;
        case cuda::kComputeCapabilityMinor:
            return state.minor;
        case cuda::kMaxSharedMemoryPerBlockOptin:
            return state.max_shared_bytes;
    }
    return -1;
}

}  // namespace

// The real ones answer without a context, and don't count as calls that can fail.
KVJIT_FAKE_EXPORT Code cuGetErrorName(Code code, const char** name) {
    const Name* found = find(code);
    *name = found ? found->name : nullptr;
    return found ? cuda::kSuccess : Code{1};
}
KVJIT_FAKE_EXPORT Code cuGetErrorString(Code code, const char** text) {
    const Name* found = find(code);
    *text = found ? found->text : nullptr;
    return found ? cuda::kSuccess : Code{1};
}
KVJIT_FAKE_EXPORT Code cuDriverGetVersion(int* version) {
    *version = fake_cuda()->version;
    return cuda::kSuccess;
}

/// NVRTC, where it finds a libcuda, asks it for tables of its own, and takes a no.
KVJIT_FAKE_EXPORT Code cuGetExportTable(const void**, const void*) {
    return cuda::kNotFound;
}

KVJIT_FAKE_EXPORT Code cuInit(unsigned flags) {
    Call call("cuInit");
    if (flags != 0) call.misuse("with flags");
    return call.code();
}
KVJIT_FAKE_EXPORT Code cuDeviceGetCount(int* count) {
    Call call("cuDeviceGetCount");
    if (!call.fails()) *count = call.state.gpus;
    return call.code();
}
KVJIT_FAKE_EXPORT Code cuDeviceGet(cuda::Device* device, int ordinal) {
    Call call("cuDeviceGet");
    if (ordinal < 0 || ordinal >= call.state.gpus) return cuda::kInvalidDevice;
    if (!call.fails()) *device = ordinal;
    return call.code();
}
KVJIT_FAKE_EXPORT Code cuDeviceGetName(char* name, int bytes, cuda::Device device) {
    Call call("cuDeviceGetName");
    if (!call.fails()) std::snprintf(name, static_cast<std::size_t>(bytes), "Fake GPU %d", device);
    return call.code();
}
KVJIT_FAKE_EXPORT Code cuDeviceGetAttribute(int* value, cuda::DeviceAttribute which, cuda::Device) {
    Call call("cuDeviceGetAttribute");
    if (!call.fails()) *value = attribute(call.state, which);
    return call.code();
}

// A context that is current somewhere is active: what the CUDA runtime of a caller does.
KVJIT_FAKE_EXPORT Code cuDevicePrimaryCtxGetState(cuda::Device device, unsigned* flags, int* active) {
    Call call("cuDevicePrimaryCtxGetState");
    *flags = 0;
    const bool used = call.state.retained[device] > 0 || fake_cuda_current() == primary_context(device);
    if (!call.fails()) *active = used;
    return call.code();
}
KVJIT_FAKE_EXPORT Code cuDevicePrimaryCtxRetain(cuda::Context* context, cuda::Device device) {
    Call call("cuDevicePrimaryCtxRetain");
    if (call.forbidden_in_capture().fails()) return call.code();
    ++call.state.retained[device];
    *context = static_cast<cuda::Context>(primary_context(device));
    return cuda::kSuccess;
}
KVJIT_FAKE_EXPORT Code cuDevicePrimaryCtxRelease_v2(cuda::Device device) {
    Call call("cuDevicePrimaryCtxRelease");
    call.forbidden_in_capture();
    if (--call.state.retained[device] < 0) call.misuse("more often than retained");
    return call.code();
}
KVJIT_FAKE_EXPORT Code cuCtxGetCurrent(cuda::Context* context) {
    Call call("cuCtxGetCurrent");
    if (!call.fails()) *context = static_cast<cuda::Context>(fake_cuda_current());
    return call.code();
}
KVJIT_FAKE_EXPORT Code cuCtxGetDevice(cuda::Device* device) {
    Call call("cuCtxGetDevice");
    if (!call.needs_context().fails()) *device = device_of(fake_cuda_current());
    return call.code();
}
KVJIT_FAKE_EXPORT Code cuCtxPushCurrent_v2(cuda::Context context) {
    Call call("cuCtxPushCurrent");
    if (!call.fails()) context_stack().push_back(context);
    return call.code();
}
KVJIT_FAKE_EXPORT Code cuCtxPopCurrent_v2(cuda::Context* context) {
    Call call("cuCtxPopCurrent");
    if (context_stack().empty()) return cuda::kInvalidContext;
    *context = static_cast<cuda::Context>(context_stack().back());
    context_stack().pop_back();
    return call.code();
}
