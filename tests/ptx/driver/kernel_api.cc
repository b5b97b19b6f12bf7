// Of the CUDA driver API: libraries, kernels, launches.
#include <elf.h>

#include <cstring>
#include <memory>
#include <string_view>

#include "ptx/driver/device.h"
#include "ptx/driver/elf_section.h"
#include "ptx/machine/parser.h"

using namespace kvjit::ptx;
namespace cuda = kvjit::rt::cuda;

namespace {

constexpr int kPlainSharedBytes = 48 * 1024;

struct LoadedKernel {
    std::shared_ptr<const Kernel> kernel;  // launches that wait keep it
    int shared_bytes = kPlainSharedBytes;  // that a launch may ask for
};

struct LoadedLibrary {
    std::vector<LoadedKernel> kernels;
};

/// Loads PTX itself or a cubin with PTX in it, as the driver does.
Code load(const char* code, LoadedLibrary& library) {
    const bool is_cubin = std::strncmp(code, ELFMAG, SELFMAG) == 0;
    const std::string_view ptx = is_cubin ? ptx_of(code) : std::string_view(code);
    if (ptx.empty()) return cuda::kNoBinaryForGpu;  // not made by the stand-in for NVRTC
    try {
        for (Kernel& kernel : parse_module(ptx)) {
            if (!Device::get().options().runs(kernel.target, is_cubin)) return cuda::kNoBinaryForGpu;
            library.kernels.push_back({std::make_shared<const Kernel>(std::move(kernel)), kPlainSharedBytes});
        }
    } catch (const Fault& fault) {
        return Device::get().note(fault);
    }
    return cuda::kSuccess;
}

LoadedKernel& kernel_of(void* handle) {
    return *static_cast<LoadedKernel*>(handle);
}

}  // namespace

KVJIT_PTX_EXPORT Code cuLibraryLoadData(void** library, const void* code, void*, void**, unsigned, void*, void**,
                                        unsigned) {
    if (const Code refused = Device::get().refuse_in_capture(); refused != cuda::kSuccess) return refused;
    auto made = std::make_unique<LoadedLibrary>();
    const Code loaded = load(static_cast<const char*>(code), *made);
    if (loaded == cuda::kSuccess) *library = made.release();
    return loaded;
}
KVJIT_PTX_EXPORT Code cuLibraryUnload(void* library) {
    delete static_cast<LoadedLibrary*>(library);
    return Device::get().refuse_in_capture();
}
KVJIT_PTX_EXPORT Code cuLibraryGetKernel(void** kernel, void* library, const char* name) {
    for (LoadedKernel& loaded : static_cast<LoadedLibrary*>(library)->kernels) {
        if (loaded.kernel->name != name) continue;
        *kernel = &loaded;
        return cuda::kSuccess;
    }
    return cuda::kNotFound;
}
KVJIT_PTX_EXPORT Code cuKernelGetFunction(void** function, void* kernel) {
    *function = kernel;
    return contexts().empty() ? cuda::kInvalidContext : Device::get().refuse_in_capture();
}
KVJIT_PTX_EXPORT Code cuFuncLoad(void*) {
    return contexts().empty() ? cuda::kInvalidContext : Device::get().refuse_in_capture();
}
KVJIT_PTX_EXPORT Code cuKernelGetAttribute(int* value, int attribute, void* kernel, cuda::Device) {
    *value = kernel_of(kernel).shared_bytes;
    return attribute == cuda::kMaxDynamicSharedSizeBytes ? cuda::kSuccess : kInvalidValue;
}
KVJIT_PTX_EXPORT Code cuKernelSetAttribute(int attribute, int value, void* kernel, cuda::Device) {
    if (attribute != cuda::kMaxDynamicSharedSizeBytes || value < 0 || value > Device::get().options().shared_bytes())
        return kInvalidValue;
    kernel_of(kernel).shared_bytes = value;
    return cuda::kSuccess;
}

KVJIT_PTX_EXPORT Code cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                     unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                     void* stream, void** parameters, void** extra) {
    constexpr unsigned kMaxGridY = 65535, kMaxThreads = 1024;
    LoadedKernel& loaded = kernel_of(function);
    if (contexts().empty()) return cuda::kInvalidContext;
    const bool is_flat = grid_z == 1 && block_y == 1 && block_z == 1 && extra == nullptr;
    const bool fits = grid_x > 0 && grid_x <= 0x7fffffffU && grid_y > 0 && grid_y <= kMaxGridY && block_x > 0 &&
                      block_x <= kMaxThreads && shared_bytes <= static_cast<unsigned>(loaded.shared_bytes);
    if (!is_flat || !fits) return kInvalidValue;
    Launch launch{grid_x, grid_y, block_x, shared_bytes, {}};
    const auto* first = static_cast<const std::byte*>(parameters[0]);
    launch.parameters.assign(first, first + loaded.kernel->parameter_bytes);
    return Device::get().enqueue(stream, [kernel = loaded.kernel, launch = std::move(launch)] {
        run_grid(*kernel, launch, Device::get().reachable().ranges(), Device::get().options());
    });
}
