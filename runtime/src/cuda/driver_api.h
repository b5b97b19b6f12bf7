// The part of the CUDA driver API that kvjit calls, declared here so that building needs no CUDA header. Names, values
// and signatures are those of "CUDA Driver API", NVIDIA; tests/unit/cuda compares them with cuda.h where there is one.
#pragma once

#include <cstddef>
#include <span>

#include "cuda/dynamic_library.h"

namespace kvjit::rt::cuda {

using Device = int;
using Address = unsigned long long;
using Context = struct ContextTag*;
using Stream = struct StreamTag*;
using Library = struct LibraryTag*;
using Kernel = struct KernelTag*;
using Function = struct FunctionTag*;

/// CUresult: the values that kvjit distinguishes.
enum Code : int {
    kSuccess = 0,
    kOutOfMemory = 2,
    kDeinitialized = 4,
    kStubLibrary = 34,
    kCallRequiresNewerDriver = 36,
    kDeviceUnavailable = 46,
    kNoDevice = 100,
    kInvalidDevice = 101,
    kInvalidImage = 200,
    kInvalidContext = 201,
    kNoBinaryForGpu = 209,
    kUnsupportedPtxVersion = 222,
    kNotFound = 500,
    kIllegalAddress = 700,
    kHardwareStackError = 714,
    kIllegalInstruction = 715,
    kMisalignedAddress = 716,
    kInvalidAddressSpace = 717,
    kInvalidPc = 718,
    kLaunchFailed = 719,
    kSystemNotReady = 802,
    kSystemDriverMismatch = 803,
    kCompatNotSupportedOnDevice = 804,
    kStreamCaptureUnsupported = 900,
    kStreamCaptureImplicit = 906,
};

enum DeviceAttribute : int {
    kMultiprocessorCount = 16,
    kComputeCapabilityMajor = 75,
    kComputeCapabilityMinor = 76,
    kMaxSharedMemoryPerBlockOptin = 97,
};

enum FunctionAttribute : int { kMaxDynamicSharedSizeBytes = 8 };
enum StreamFlags : unsigned { kStreamNonBlocking = 1 };
enum CaptureStatus : int { kCaptureNone = 0 };
enum CaptureMode : int { kCaptureRelaxed = 2 };

enum MemoryType : int { kHostMemory = 1, kDeviceMemory = 2 };

/// CUDA_MEMCPY2D: rows of `width` bytes, each side's `pitch` bytes apart.
struct Copy2d {
    struct Side {
        std::size_t x, y;
        MemoryType type;
        void* host;  // the memory's type says which of the two is used
        Address device;
        void* array;
        std::size_t pitch;
    };
    Side from, to;
    std::size_t width, height;
};

/// One member for each function; the table in driver_api.cc has the symbols.
struct DriverApi {
    Code (*init)(unsigned flags);
    Code (*driver_get_version)(int* version);
    Code (*get_error_name)(Code code, const char** name);
    Code (*get_error_string)(Code code, const char** text);

    Code (*device_get_count)(int* count);
    Code (*device_get)(Device* device, int ordinal);
    Code (*device_get_name)(char* name, int bytes, Device device);
    Code (*device_get_attribute)(int* value, DeviceAttribute attribute, Device device);

    Code (*primary_context_get_state)(Device device, unsigned* flags, int* active);
    Code (*primary_context_retain)(Context* context, Device device);
    Code (*primary_context_release)(Device device);
    Code (*context_get_current)(Context* context);
    Code (*context_get_device)(Device* device);
    Code (*context_push)(Context context);
    Code (*context_pop)(Context* context);

    /// `jit_*` and `*_options`: null, with counts of 0.
    Code (*library_load_data)(Library* library, const void* code, void* jit_options, void** jit_values,
                              unsigned jit_count, void* options, void** values, unsigned count);
    Code (*library_unload)(Library library);
    Code (*library_get_kernel)(Kernel* kernel, Library library, const char* name);
    Code (*kernel_get_function)(Function* function, Kernel kernel);
    Code (*kernel_get_attribute)(int* value, FunctionAttribute attribute, Kernel kernel, Device device);
    Code (*kernel_set_attribute)(FunctionAttribute attribute, int value, Kernel kernel, Device device);
    Code (*function_load)(Function function);  // null before CUDA 12.4
    /// Takes a Kernel for `function` too.
    Code (*launch_kernel)(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                          unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream stream, void** parameters,
                          void** extra);

    Code (*memory_alloc)(Address* address, std::size_t bytes);
    Code (*memory_free)(Address address);
    Code (*copy_to_device)(Address to, const void* from, std::size_t bytes, Stream stream);
    Code (*copy_to_host)(void* to, Address from, std::size_t bytes, Stream stream);
    Code (*copy_on_device)(Address to, Address from, std::size_t bytes, Stream stream);
    Code (*copy_rows)(const Copy2d* copy, Stream stream);
    Code (*set_bytes)(Address to, unsigned char value, std::size_t count, Stream stream);
    Code (*set_rows)(Address to, std::size_t pitch, unsigned char value, std::size_t width, std::size_t height,
                     Stream stream);
    Code (*memory_alloc_async)(Address* address, std::size_t bytes, Stream stream);
    Code (*memory_free_async)(Address address, Stream stream);

    Code (*stream_create)(Stream* stream, StreamFlags flags);
    Code (*stream_destroy)(Stream stream);
    Code (*stream_synchronize)(Stream stream);
    Code (*stream_is_capturing)(Stream stream, CaptureStatus* status);
    Code (*thread_exchange_capture_mode)(CaptureMode* mode);
};

/// By their names in libcuda.so.1: functions that changed have a version after their name.
std::span<const Symbol<DriverApi>> driver_symbols();

}  // namespace kvjit::rt::cuda
