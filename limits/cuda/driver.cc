#include "limits/cuda/driver.h"

#include <dlfcn.h>

#include <stdexcept>

#include "kvjit/kvjit.hpp"

namespace kvjit::gpu {
namespace {

Driver table;

/// What the table's members are called in the library.
struct Symbol {
    const char* name;
    void* member;
};

const Symbol kSymbols[] = {
    {"cuInit", &table.init},
    {"cuDriverGetVersion", &table.driver_version},
    {"cuDeviceGetCount", &table.device_count},
    {"cuDeviceGet", &table.device_get},
    {"cuDeviceGetName", &table.device_name},
    {"cuDeviceGetAttribute", &table.device_attribute},
    {"cuDevicePrimaryCtxRetain", &table.context_retain},
    {"cuDevicePrimaryCtxRelease_v2", &table.context_release},
    {"cuCtxSetCurrent", &table.context_set},
    {"cuCtxGetCurrent", &table.context_get},
    {"cuCtxSynchronize", &table.context_synchronize},
    {"cuMemGetInfo_v2", &table.memory_info},
    {"cuMemAlloc_v2", &table.memory_allocate},
    {"cuMemFree_v2", &table.memory_free},
    {"cuMemcpyHtoD_v2", &table.copy_to_device},
    {"cuMemcpyDtoH_v2", &table.copy_to_host},
    {"cuMemcpyDtoDAsync_v2", &table.copy_on_device},
    {"cuMemsetD8Async", &table.set_bytes},
    {"cuMemHostRegister_v2", &table.host_register},
    {"cuMemHostUnregister", &table.host_unregister},
    {"cuLibraryLoadData", &table.library_load},
    {"cuLibraryUnload", &table.library_unload},
    {"cuLibraryGetKernel", &table.library_kernel},
    {"cuLaunchKernel", &table.launch_kernel},
    {"cuStreamCreate", &table.stream_create},
    {"cuStreamDestroy_v2", &table.stream_destroy},
    {"cuStreamSynchronize", &table.stream_synchronize},
    {"cuStreamQuery", &table.stream_query},
    {"cuLaunchHostFunc", &table.stream_call_host},
    {"cuStreamBeginCapture_v2", &table.capture_begin},
    {"cuStreamEndCapture", &table.capture_end},
    {"cuGraphGetNodes", &table.graph_nodes},
    {"cuGraphInstantiateWithFlags", &table.graph_instantiate},
    {"cuGraphLaunch", &table.graph_launch},
    {"cuGraphExecDestroy", &table.graph_executable_destroy},
    {"cuGraphDestroy", &table.graph_destroy},
    {"cuEventCreate", &table.event_create},
    {"cuEventDestroy_v2", &table.event_destroy},
    {"cuEventRecord", &table.event_record},
    {"cuEventSynchronize", &table.event_synchronize},
    {"cuEventElapsedTime", &table.event_elapsed},
    {"cuGetErrorName", &table.error_name},
    {"cuGetErrorString", &table.error_text},
};

std::string sentence(int result, const char* call) {
    const char* name = nullptr;
    const char* text = nullptr;
    table.error_name(result, &name);
    table.error_text(result, &text);
    return std::string(call) + ": " + (name != nullptr ? name : std::to_string(result)) + ": " +
           (text != nullptr ? text : "no description");
}

/// Why there is no GPU to use; empty if there is one.
std::string open() {
    (void)Target::cuda_device(0);  // opens the driver, wherever it lies; then its name is enough
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return "no GPU: libcuda.so.1, which comes with NVIDIA's driver, can't be opened";
    for (const Symbol& symbol : kSymbols) {
        void* found = dlsym(library, symbol.name);
        if (found == nullptr) return std::string("no GPU: libcuda.so.1 is older than CUDA 12: no ") + symbol.name;
        *static_cast<void**>(symbol.member) = found;
    }
    if (const int result = table.init(0); result != 0) return "no GPU: " + sentence(result, "cuInit");
    int count = 0;
    if (const int result = table.device_count(&count); result != 0)
        return "no GPU: " + sentence(result, "cuDeviceGetCount");
    return count == 0 ? "no GPU: the driver knows of none" : "";
}

}  // namespace

std::expected<const Driver*, std::string> open_driver() {
    static const std::string why = open();
    if (!why.empty()) return std::unexpected(why);
    return &table;
}

const Driver& driver() {
    return table;
}

void check(int result, const char* call) {
    if (result != 0) throw std::runtime_error(sentence(result, call));
}

}  // namespace kvjit::gpu
