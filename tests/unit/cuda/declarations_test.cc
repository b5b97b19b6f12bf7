// What driver_api.h and nvrtc_api.h declare, against NVIDIA's headers and libraries, where they are: built only there.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <cuda.h>
#include <doctest/doctest.h>
#include <nvrtc.h>

#include <cstddef>
#include <set>
#include <string>
#include <type_traits>

#include "cuda/driver.h"
#include "cuda/nvrtc_api.h"

using namespace kvjit;
using Driver = rt::cuda::DriverApi;
using Nvrtc = rt::nvrtc::Api;

namespace {

/// Passed alike: of the same size, and both or neither in floating-point registers.
template <class A, class B>
constexpr bool is_same_value = sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B> &&
                               std::is_floating_point_v<A> == std::is_floating_point_v<B>;

template <class A, class B>
constexpr bool is_same_call = false;
template <class A, class... As, class B, class... Bs>
    requires(sizeof...(As) == sizeof...(Bs))
constexpr bool is_same_call<A (*)(As...), B (*)(Bs...)> = is_same_value<A, B> && (is_same_value<As, Bs> && ...);

}  // namespace

// cuda.h names the newest version of a function by macro: these are the functions that the table's symbols stand for.
#define KVJIT_SAME_CALL(Api, member, function) static_assert(is_same_call<decltype(Api::member), decltype(&function)>)
KVJIT_SAME_CALL(Driver, init, cuInit);
KVJIT_SAME_CALL(Driver, driver_get_version, cuDriverGetVersion);
KVJIT_SAME_CALL(Driver, get_error_name, cuGetErrorName);
KVJIT_SAME_CALL(Driver, get_error_string, cuGetErrorString);
KVJIT_SAME_CALL(Driver, device_get_count, cuDeviceGetCount);
KVJIT_SAME_CALL(Driver, device_get, cuDeviceGet);
KVJIT_SAME_CALL(Driver, device_get_name, cuDeviceGetName);
KVJIT_SAME_CALL(Driver, device_get_attribute, cuDeviceGetAttribute);
KVJIT_SAME_CALL(Driver, primary_context_get_state, cuDevicePrimaryCtxGetState);
KVJIT_SAME_CALL(Driver, primary_context_retain, cuDevicePrimaryCtxRetain);
KVJIT_SAME_CALL(Driver, primary_context_release, cuDevicePrimaryCtxRelease);
KVJIT_SAME_CALL(Driver, context_get_current, cuCtxGetCurrent);
KVJIT_SAME_CALL(Driver, context_get_device, cuCtxGetDevice);
KVJIT_SAME_CALL(Driver, context_push, cuCtxPushCurrent);
KVJIT_SAME_CALL(Driver, context_pop, cuCtxPopCurrent);
KVJIT_SAME_CALL(Driver, library_load_data, cuLibraryLoadData);
KVJIT_SAME_CALL(Driver, library_unload, cuLibraryUnload);
KVJIT_SAME_CALL(Driver, library_get_kernel, cuLibraryGetKernel);
KVJIT_SAME_CALL(Driver, kernel_get_function, cuKernelGetFunction);
KVJIT_SAME_CALL(Driver, kernel_get_attribute, cuKernelGetAttribute);
KVJIT_SAME_CALL(Driver, kernel_set_attribute, cuKernelSetAttribute);
KVJIT_SAME_CALL(Driver, function_load, cuFuncLoad);
KVJIT_SAME_CALL(Driver, launch_kernel, cuLaunchKernel);
KVJIT_SAME_CALL(Driver, memory_alloc, cuMemAlloc);
KVJIT_SAME_CALL(Driver, memory_free, cuMemFree);
KVJIT_SAME_CALL(Driver, copy_to_device, cuMemcpyHtoDAsync);
KVJIT_SAME_CALL(Driver, copy_to_host, cuMemcpyDtoHAsync);
KVJIT_SAME_CALL(Driver, copy_on_device, cuMemcpyDtoDAsync);
KVJIT_SAME_CALL(Driver, copy_rows, cuMemcpy2DAsync);
KVJIT_SAME_CALL(Driver, set_bytes, cuMemsetD8Async);
KVJIT_SAME_CALL(Driver, set_rows, cuMemsetD2D8Async);
KVJIT_SAME_CALL(Driver, memory_alloc_async, cuMemAllocAsync);
KVJIT_SAME_CALL(Driver, memory_free_async, cuMemFreeAsync);
KVJIT_SAME_CALL(Driver, stream_create, cuStreamCreate);
KVJIT_SAME_CALL(Driver, stream_destroy, cuStreamDestroy);
KVJIT_SAME_CALL(Driver, stream_synchronize, cuStreamSynchronize);
KVJIT_SAME_CALL(Driver, stream_is_capturing, cuStreamIsCapturing);
KVJIT_SAME_CALL(Driver, thread_exchange_capture_mode, cuThreadExchangeStreamCaptureMode);
KVJIT_SAME_CALL(Nvrtc, get_error_string, nvrtcGetErrorString);
KVJIT_SAME_CALL(Nvrtc, version, nvrtcVersion);
KVJIT_SAME_CALL(Nvrtc, get_num_supported_archs, nvrtcGetNumSupportedArchs);
KVJIT_SAME_CALL(Nvrtc, get_supported_archs, nvrtcGetSupportedArchs);
KVJIT_SAME_CALL(Nvrtc, create_program, nvrtcCreateProgram);
KVJIT_SAME_CALL(Nvrtc, destroy_program, nvrtcDestroyProgram);
KVJIT_SAME_CALL(Nvrtc, compile_program, nvrtcCompileProgram);
KVJIT_SAME_CALL(Nvrtc, get_program_log_size, nvrtcGetProgramLogSize);
KVJIT_SAME_CALL(Nvrtc, get_program_log, nvrtcGetProgramLog);
KVJIT_SAME_CALL(Nvrtc, get_cubin_size, nvrtcGetCUBINSize);
KVJIT_SAME_CALL(Nvrtc, get_cubin, nvrtcGetCUBIN);
KVJIT_SAME_CALL(Nvrtc, get_ptx_size, nvrtcGetPTXSize);
KVJIT_SAME_CALL(Nvrtc, get_ptx, nvrtcGetPTX);

#define KVJIT_EQUAL(ours, theirs) static_assert(static_cast<int>(ours) == static_cast<int>(theirs))
KVJIT_EQUAL(rt::cuda::kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
KVJIT_EQUAL(rt::cuda::kStubLibrary, CUDA_ERROR_STUB_LIBRARY);
KVJIT_EQUAL(rt::cuda::kCallRequiresNewerDriver, CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER);
KVJIT_EQUAL(rt::cuda::kDeviceUnavailable, CUDA_ERROR_DEVICE_UNAVAILABLE);
KVJIT_EQUAL(rt::cuda::kNoDevice, CUDA_ERROR_NO_DEVICE);
KVJIT_EQUAL(rt::cuda::kInvalidDevice, CUDA_ERROR_INVALID_DEVICE);
KVJIT_EQUAL(rt::cuda::kInvalidImage, CUDA_ERROR_INVALID_IMAGE);
KVJIT_EQUAL(rt::cuda::kInvalidContext, CUDA_ERROR_INVALID_CONTEXT);
KVJIT_EQUAL(rt::cuda::kNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU);
KVJIT_EQUAL(rt::cuda::kUnsupportedPtxVersion, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
KVJIT_EQUAL(rt::cuda::kNotFound, CUDA_ERROR_NOT_FOUND);
KVJIT_EQUAL(rt::cuda::kIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS);
KVJIT_EQUAL(rt::cuda::kHardwareStackError, CUDA_ERROR_HARDWARE_STACK_ERROR);
KVJIT_EQUAL(rt::cuda::kLaunchFailed, CUDA_ERROR_LAUNCH_FAILED);
KVJIT_EQUAL(rt::cuda::kSystemNotReady, CUDA_ERROR_SYSTEM_NOT_READY);
KVJIT_EQUAL(rt::cuda::kCompatNotSupportedOnDevice, CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE);
KVJIT_EQUAL(rt::cuda::kStreamCaptureUnsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
KVJIT_EQUAL(rt::cuda::kStreamCaptureImplicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
KVJIT_EQUAL(rt::cuda::kMultiprocessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
KVJIT_EQUAL(rt::cuda::kComputeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
KVJIT_EQUAL(rt::cuda::kComputeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
KVJIT_EQUAL(rt::cuda::kMaxSharedMemoryPerBlockOptin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
KVJIT_EQUAL(rt::cuda::kMaxDynamicSharedSizeBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
KVJIT_EQUAL(rt::cuda::kStreamNonBlocking, CU_STREAM_NON_BLOCKING);
KVJIT_EQUAL(rt::cuda::kCaptureNone, CU_STREAM_CAPTURE_STATUS_NONE);
KVJIT_EQUAL(rt::cuda::kCaptureRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
KVJIT_EQUAL(rt::cuda::kHostMemory, CU_MEMORYTYPE_HOST);
KVJIT_EQUAL(rt::cuda::kDeviceMemory, CU_MEMORYTYPE_DEVICE);
KVJIT_EQUAL(rt::nvrtc::kOutOfMemory, NVRTC_ERROR_OUT_OF_MEMORY);
KVJIT_EQUAL(rt::nvrtc::kInvalidOption, NVRTC_ERROR_INVALID_OPTION);
KVJIT_EQUAL(rt::nvrtc::kCompilation, NVRTC_ERROR_COMPILATION);
KVJIT_EQUAL(rt::nvrtc::kBuiltinOperationFailure, NVRTC_ERROR_BUILTIN_OPERATION_FAILURE);

// Members of the one struct.
#define KVJIT_PLACE(ours, theirs) \
    static_assert(offsetof(rt::cuda::Copy2d, ours) == offsetof(CUDA_MEMCPY2D, theirs), #theirs)
KVJIT_PLACE(from.x, srcXInBytes);
KVJIT_PLACE(from.y, srcY);
KVJIT_PLACE(from.type, srcMemoryType);
KVJIT_PLACE(from.host, srcHost);
KVJIT_PLACE(from.device, srcDevice);
KVJIT_PLACE(from.array, srcArray);
KVJIT_PLACE(from.pitch, srcPitch);
KVJIT_PLACE(to.x, dstXInBytes);
KVJIT_PLACE(to.y, dstY);
KVJIT_PLACE(to.type, dstMemoryType);
KVJIT_PLACE(to.host, dstHost);
KVJIT_PLACE(to.device, dstDevice);
KVJIT_PLACE(to.array, dstArray);
KVJIT_PLACE(to.pitch, dstPitch);
KVJIT_PLACE(width, WidthInBytes);
KVJIT_PLACE(height, Height);
static_assert(sizeof(rt::cuda::Copy2d) == sizeof(CUDA_MEMCPY2D));

// The versions behind the names.
#define KVJIT_TEXT_OF(name) #name
#define KVJIT_TEXT(name) KVJIT_TEXT_OF(name)

TEST_CASE("each function is called by the name that cuda.h gives its newest version") {
    std::set<std::string> symbols;
    for (const auto& symbol : rt::cuda::driver_symbols()) symbols.insert(symbol.name);
    CHECK(symbols.size() == rt::cuda::driver_symbols().size());
    for (const char* name :
         {KVJIT_TEXT(cuDevicePrimaryCtxRelease), KVJIT_TEXT(cuCtxPushCurrent), KVJIT_TEXT(cuCtxPopCurrent),
          KVJIT_TEXT(cuMemAlloc), KVJIT_TEXT(cuMemFree), KVJIT_TEXT(cuMemcpyHtoDAsync), KVJIT_TEXT(cuMemcpyDtoHAsync),
          KVJIT_TEXT(cuMemcpyDtoDAsync), KVJIT_TEXT(cuMemcpy2DAsync), KVJIT_TEXT(cuMemsetD2D8Async),
          KVJIT_TEXT(cuMemAllocAsync), KVJIT_TEXT(cuMemFreeAsync), KVJIT_TEXT(cuMemsetD8Async),
          KVJIT_TEXT(cuStreamCreate), KVJIT_TEXT(cuStreamDestroy), KVJIT_TEXT(cuLaunchKernel),
          KVJIT_TEXT(cuStreamIsCapturing), KVJIT_TEXT(cuStreamSynchronize)}) {
        CHECK_MESSAGE(symbols.contains(name), name);
    }
}

TEST_CASE("the toolkit's stub has every function, and starting it says that it is a stub") {
    const std::string path = KVJIT_TEST_CUDA_STUB;
    const auto driver = rt::Driver::open({&path, 1});
    REQUIRE_MESSAGE(driver.has_value(), driver.error().message);
    CHECK(static_cast<bool>(driver->api().function_load));
    const auto started = driver->initialise();
    REQUIRE_FALSE(started.has_value());
    CHECK(started.error().value == CUDA_ERROR_STUB_LIBRARY);
    CHECK(started.error().message.find("LD_LIBRARY_PATH") != std::string::npos);
}
