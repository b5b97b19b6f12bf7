#include "cuda_driver.h"

#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace demo {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";

template <class Function>
void find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(library, name));
    if (function == nullptr) throw std::runtime_error(std::string("no GPU: ") + kLibrary + " lacks " + name);
}

}  // namespace

void CudaDriver::must(int result, const char* what) const {
    if (result == 0) return;
    const char* text = nullptr;
    const bool known = get_error_string(result, &text) == 0 && text != nullptr;
    throw std::runtime_error(std::string(what) + ": CUDA error " + std::to_string(result) + ", " +
                             (known ? text : "of which the driver knows no more"));
}

CudaDriver open_cuda_driver() {
    void* library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);  // stays open: the driver can't be closed
    if (library == nullptr) throw std::runtime_error(std::string("no GPU: ") + kLibrary + " can't be opened");
    CudaDriver driver;
    find(library, "cuInit", driver.init);
    find(library, "cuGetErrorString", driver.get_error_string);
    find(library, "cuDeviceGet", driver.device_get);
    find(library, "cuDeviceGetName", driver.device_get_name);
    find(library, "cuDeviceGetAttribute", driver.device_get_attribute);
    find(library, "cuDevicePrimaryCtxRetain", driver.primary_context_retain);
    find(library, "cuCtxSetCurrent", driver.context_set_current);
    find(library, "cuCtxSynchronize", driver.context_synchronize);
    find(library, "cuMemGetInfo_v2", driver.memory_get_info);
    find(library, "cuMemAllocManaged", driver.memory_alloc_managed);
    find(library, "cuMemFree_v2", driver.memory_free);
    find(library, "cuMemsetD8_v2", driver.memory_set);
    find(library, "cuMemPrefetchAsync", driver.memory_prefetch);
    find(library, "cuMemcpyDtoDAsync_v2", driver.memory_copy);
    return driver;
}

}  // namespace demo
