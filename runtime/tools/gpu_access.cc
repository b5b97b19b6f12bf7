#include "gpu_access.h"

#include <dlfcn.h>
#include <unistd.h>

#include <charconv>
#include <new>
#include <optional>

#include "kvjit/kvjit.h"

namespace kvjit::tool {
namespace {

// The CUDA driver API, as far as it is needed here.
constexpr unsigned kPortableAndMapped = 0x03;  // CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP

struct Driver {
    int (*init)(unsigned) = nullptr;
    int (*device_get)(int*, int) = nullptr;
    int (*primary_context_retain)(void**, int) = nullptr;
    int (*context_set_current)(void*) = nullptr;
    int (*host_register)(void*, std::size_t, unsigned) = nullptr;
    int (*host_unregister)(void*) = nullptr;
};

Driver driver;
bool is_open = false;

template <class Function>
bool find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    return function != nullptr;
}

/// Ordinal of the GPU that `target`, a legal name, runs on. For a named architecture it is the first GPU.
std::optional<int> gpu_ordinal(std::string_view target) {
    if (target == "cuda" || target.starts_with("sm_")) return 0;
    if (!target.starts_with("cuda:")) return std::nullopt;
    int ordinal = 0;
    std::from_chars(target.data() + 5, target.data() + target.size(), ordinal);
    return ordinal;
}

/// The error that kvjit reports for `target`, if any.
kvjit_error ask_kvjit(const std::string& target) {
    kvjit_error error;
    kvjit_error_init(&error);
    kvjit_target* made = nullptr;
    kvjit_target_create(target.c_str(), &made, &error);
    kvjit_target_release(made);
    return error;
}

/// kvjit has opened the driver already, wherever it lies, so that its name is enough.
Result<void> load_driver() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return fail("no GPU: libcuda.so.1, which comes with NVIDIA's driver, can't be opened");
    const bool found = find(library, "cuInit", driver.init) && find(library, "cuDeviceGet", driver.device_get) &&
                       find(library, "cuDevicePrimaryCtxRetain", driver.primary_context_retain) &&
                       find(library, "cuCtxSetCurrent", driver.context_set_current) &&
                       find(library, "cuMemHostRegister_v2", driver.host_register) &&
                       find(library, "cuMemHostUnregister", driver.host_unregister);
    if (!found) return fail("no GPU: libcuda.so.1 lacks a function of CUDA 12");
    return {};
}

}  // namespace

Result<void> open_gpu(const std::string& target) {
    if (is_open || ask_kvjit(target).status == KVJIT_BAD_TARGET) return {};
    const std::optional<int> ordinal = gpu_ordinal(target);
    if (!ordinal) return {};
    const kvjit_error error = ask_kvjit("cuda:" + std::to_string(*ordinal));
    if (error.status != KVJIT_OK) return fail(std::string("no GPU: ") + error.message);
    if (auto loaded = load_driver(); !loaded) return loaded;
    int device = 0;
    void* context = nullptr;
    const bool current = driver.init(0) == 0 && driver.device_get(&device, *ordinal) == 0 &&
                         driver.primary_context_retain(&context, device) == 0 &&
                         driver.context_set_current(context) == 0;
    if (!current) return fail("no GPU " + std::to_string(*ordinal) + ", or the driver can't use it");
    is_open = true;
    return {};
}

std::size_t gpu_page_bytes() {
    return is_open ? static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) : 1;
}

void show_to_gpu(void* memory, std::size_t bytes) {
    if (is_open && driver.host_register(memory, bytes, kPortableAndMapped) != 0) throw std::bad_alloc();
}

void hide_from_gpu(void* memory) noexcept {
    if (is_open) driver.host_unregister(memory);
}

}  // namespace kvjit::tool
