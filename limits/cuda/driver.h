// The CUDA driver API, as far as tests, benchmarks and the `kvjit` command need it: declared here, opened at run time,
// so that everything builds without CUDA.
#pragma once

#include <cstddef>
#include <expected>
#include <string>

namespace kvjit::gpu {

using DevicePointer = unsigned long long;
using HostFunction = void (*)(void* argument);

/// Functions as libcuda.so.1 of CUDA 12 and later exports them. Contexts, streams, events, graphs are void*.
struct Driver {
    int (*init)(unsigned flags);
    int (*driver_version)(int* version);
    int (*device_count)(int* count);
    int (*device_get)(int* device, int ordinal);
    int (*device_name)(char* name, int size, int device);
    int (*device_attribute)(int* value, int attribute, int device);
    int (*context_retain)(void** context, int device);
    int (*context_release)(int device);
    int (*context_set)(void* context);
    int (*context_get)(void** context);
    int (*context_synchronize)();
    int (*memory_info)(std::size_t* free, std::size_t* total);
    int (*memory_allocate)(DevicePointer* memory, std::size_t bytes);
    int (*memory_free)(DevicePointer memory);
    int (*copy_to_device)(DevicePointer to, const void* from, std::size_t bytes);
    int (*copy_to_host)(void* to, DevicePointer from, std::size_t bytes);
    int (*copy_on_device)(DevicePointer to, DevicePointer from, std::size_t bytes, void* stream);
    int (*set_bytes)(DevicePointer to, unsigned char value, std::size_t bytes, void* stream);
    int (*host_register)(void* memory, std::size_t bytes, unsigned flags);
    int (*host_unregister)(void* memory);
    /// `code`: a cubin, or PTX that ends with 0. `jit_*` and `*_options`: null, with counts of 0.
    int (*library_load)(void** library, const void* code, void* jit_options, void** jit_values, unsigned jit_count,
                        void* options, void** values, unsigned count);
    int (*library_unload)(void* library);
    int (*library_kernel)(void** kernel, void* library, const char* name);
    int (*launch_kernel)(void* kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                         unsigned block_y, unsigned block_z, unsigned shared_bytes, void* stream, void** parameters,
                         void** extra);
    int (*stream_create)(void** stream, unsigned flags);
    int (*stream_destroy)(void* stream);
    int (*stream_synchronize)(void* stream);
    int (*stream_query)(void* stream);
    int (*stream_call_host)(void* stream, HostFunction function, void* argument);
    int (*capture_begin)(void* stream, int mode);
    int (*capture_end)(void* stream, void** graph);
    int (*graph_nodes)(void* graph, void** nodes, std::size_t* count);
    int (*graph_instantiate)(void** executable, void* graph, unsigned long long flags);
    int (*graph_launch)(void* executable, void* stream);
    int (*graph_executable_destroy)(void* executable);
    int (*graph_destroy)(void* graph);
    int (*event_create)(void** event, unsigned flags);
    int (*event_destroy)(void* event);
    int (*event_record)(void* event, void* stream);
    int (*event_synchronize)(void* event);
    int (*event_elapsed)(float* milliseconds, void* start, void* end);
    int (*error_name)(int result, const char** name);
    int (*error_text)(int result, const char** text);
};

// Numbers of the driver API.
inline constexpr int kNotReady = 600;              // CUDA_ERROR_NOT_READY
inline constexpr int kMultiprocessorCount = 16;    // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
inline constexpr int kL2CacheBytes = 38;           // CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE
inline constexpr int kCapabilityMajor = 75;        // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
inline constexpr int kCapabilityMinor = 76;        // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
inline constexpr unsigned kNonBlocking = 1;        // CU_STREAM_NON_BLOCKING
inline constexpr unsigned kPortableAndMapped = 3;  // CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP
inline constexpr int kCaptureGlobal = 0;           // CU_STREAM_CAPTURE_MODE_GLOBAL

/// Opens libcuda.so.1 and starts the driver, once a process. Errors: why there is no GPU to use, as a sentence.
std::expected<const Driver*, std::string> open_driver();

/// The opened driver. Precondition: open_driver() succeeded.
const Driver& driver();

/// Throws std::runtime_error with CUDA's name and sentence for `result` unless it is 0. `call` says what was tried.
void check(int result, const char* call);

}  // namespace kvjit::gpu
