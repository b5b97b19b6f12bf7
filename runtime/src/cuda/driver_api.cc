#include "cuda/driver_api.h"

namespace kvjit::rt::cuda {
namespace {

using Api = DriverApi;

constexpr Symbol<Api> kSymbols[] = {
    symbol<&Api::init>("cuInit"),
    symbol<&Api::driver_get_version>("cuDriverGetVersion"),
    symbol<&Api::get_error_name>("cuGetErrorName"),
    symbol<&Api::get_error_string>("cuGetErrorString"),
    symbol<&Api::device_get_count>("cuDeviceGetCount"),
    symbol<&Api::device_get>("cuDeviceGet"),
    symbol<&Api::device_get_name>("cuDeviceGetName"),
    symbol<&Api::device_get_attribute>("cuDeviceGetAttribute"),
    symbol<&Api::primary_context_get_state>("cuDevicePrimaryCtxGetState"),
    symbol<&Api::primary_context_retain>("cuDevicePrimaryCtxRetain"),
    symbol<&Api::primary_context_release>("cuDevicePrimaryCtxRelease_v2"),
    symbol<&Api::context_get_current>("cuCtxGetCurrent"),
    symbol<&Api::context_get_device>("cuCtxGetDevice"),
    symbol<&Api::context_push>("cuCtxPushCurrent_v2"),
    symbol<&Api::context_pop>("cuCtxPopCurrent_v2"),
    symbol<&Api::library_load_data>("cuLibraryLoadData"),
    symbol<&Api::library_unload>("cuLibraryUnload"),
    symbol<&Api::library_get_kernel>("cuLibraryGetKernel"),
    symbol<&Api::kernel_get_function>("cuKernelGetFunction"),
    symbol<&Api::kernel_get_attribute>("cuKernelGetAttribute"),
    symbol<&Api::kernel_set_attribute>("cuKernelSetAttribute"),
    symbol<&Api::function_load>("cuFuncLoad", false),
    symbol<&Api::launch_kernel>("cuLaunchKernel"),
    symbol<&Api::memory_alloc>("cuMemAlloc_v2"),
    symbol<&Api::memory_free>("cuMemFree_v2"),
    symbol<&Api::copy_to_device>("cuMemcpyHtoDAsync_v2"),
    symbol<&Api::copy_to_host>("cuMemcpyDtoHAsync_v2"),
    symbol<&Api::copy_on_device>("cuMemcpyDtoDAsync_v2"),
    symbol<&Api::copy_rows>("cuMemcpy2DAsync_v2"),
    symbol<&Api::set_bytes>("cuMemsetD8Async"),
    symbol<&Api::set_rows>("cuMemsetD2D8Async"),
    symbol<&Api::memory_alloc_async>("cuMemAllocAsync"),
    symbol<&Api::memory_free_async>("cuMemFreeAsync"),
    symbol<&Api::stream_create>("cuStreamCreate"),
    symbol<&Api::stream_destroy>("cuStreamDestroy_v2"),
    symbol<&Api::stream_synchronize>("cuStreamSynchronize"),
    symbol<&Api::stream_is_capturing>("cuStreamIsCapturing"),
    symbol<&Api::thread_exchange_capture_mode>("cuThreadExchangeStreamCaptureMode"),
};

}  // namespace

std::span<const Symbol<DriverApi>> driver_symbols() {
    return kSymbols;
}

}  // namespace kvjit::rt::cuda
