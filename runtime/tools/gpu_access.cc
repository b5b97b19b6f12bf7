#include "gpu_access.h"

#include <unistd.h>

#include <charconv>
#include <exception>
#include <new>

#include "kvjit/kvjit.h"
#include "limits/cuda/gpu.h"

namespace kvjit::tool {
namespace {

const gpu::Gpu* opened = nullptr;  // kept until the process ends

/// The error that kvjit reports for `target`, if any.
kvjit_error ask_kvjit(const std::string& target) {
    kvjit_error error;
    kvjit_error_init(&error);
    kvjit_target* made = nullptr;
    kvjit_target_create(target.c_str(), &made, &error);
    kvjit_target_release(made);
    return error;
}

}  // namespace

std::optional<int> gpu_ordinal(std::string_view target) {
    target = target.substr(0, target.find('+'));
    if (target == "cuda" || target.starts_with("sm_")) return 0;
    if (!target.starts_with("cuda:")) return std::nullopt;
    int ordinal = 0;
    std::from_chars(target.data() + 5, target.data() + target.size(), ordinal);
    return ordinal;
}

Result<const gpu::Gpu*> find_gpu(int ordinal) {
    const kvjit_error error = ask_kvjit("cuda:" + std::to_string(ordinal));
    if (error.status != KVJIT_OK) return fail(std::string("no GPU: ") + error.message);
    if (const auto driver = gpu::open_driver(); !driver) return fail(driver.error());
    try {
        return new gpu::Gpu(ordinal);
    } catch (const std::exception& refused) {
        return fail("no GPU " + std::to_string(ordinal) + ", or the driver can't use it: " + refused.what());
    }
}

Result<void> open_gpu(const std::string& target) {
    if (opened != nullptr || ask_kvjit(target).status == KVJIT_BAD_TARGET) return {};
    const std::optional<int> ordinal = gpu_ordinal(target);
    if (!ordinal) return {};
    const auto found = find_gpu(*ordinal);
    if (!found) return fail(found.error());
    opened = *found;
    return {};
}

std::size_t gpu_page_bytes() {
    return opened != nullptr ? static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) : 1;
}

void show_to_gpu(void* memory, std::size_t bytes) {
    if (opened == nullptr) return;
    if (gpu::driver().host_register(memory, bytes, gpu::kPortableAndMapped) != 0) throw std::bad_alloc();
}

void hide_from_gpu(void* memory) noexcept {
    if (opened != nullptr) gpu::driver().host_unregister(memory);
}

}  // namespace kvjit::tool
