// The little of CUDA's driver that the demo's own memory needs. Opened at run time and declared here, so that the demo
// is built, and runs on CPUs, where there is no CUDA at all.
#pragma once

#include <cstddef>
#include <cstdint>

namespace demo {

/// Members are named after the driver's functions. CUresult and CUdevice are int, CUdeviceptr is 64 bits, and
/// of managed memory an address that the host uses, too.
struct CudaDriver {
    int (*init)(unsigned flags);
    int (*get_error_string)(int result, const char** text);
    int (*device_get)(int* device, int ordinal);
    int (*device_get_name)(char* name, int size, int device);
    int (*device_get_attribute)(int* value, int attribute, int device);
    int (*primary_context_retain)(void** context, int device);
    int (*context_set_current)(void* context);
    int (*context_synchronize)();
    int (*memory_get_info)(std::size_t* free, std::size_t* total);
    int (*memory_alloc_managed)(void** memory, std::size_t bytes, unsigned flags);
    int (*memory_free)(std::uint64_t memory);
    int (*memory_set)(std::uint64_t memory, unsigned char value, std::size_t bytes);
    int (*memory_prefetch)(std::uint64_t memory, std::size_t bytes, int device, void* stream);
    int (*memory_copy)(std::uint64_t to, std::uint64_t from, std::size_t bytes, void* stream);

    /// Throws with the driver's own sentence if `result`, of `what`, is an error.
    void must(int result, const char* what) const;
};

/// Call it when kvjit has made a GPU's target: that has opened the driver, wherever it lies, so that its name is enough
/// here. Throws where the machine has no driver.
CudaDriver open_cuda_driver();

}  // namespace demo
