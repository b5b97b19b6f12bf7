#include "gpu.h"

#include <chrono>
#include <stdexcept>

namespace demo {
namespace {

// The driver's constants.
constexpr int kMultiprocessors = 16;          // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
constexpr int kL2Bytes = 38;                  // CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE
constexpr int kConcurrentManagedAccess = 89;  // CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS
constexpr unsigned kAttachGlobal = 1;         // CU_MEM_ATTACH_GLOBAL

constexpr std::size_t kCopyBytes = std::size_t{512} << 20;
constexpr int kCopies = 8;

std::uint64_t address(const void* block) {
    return reinterpret_cast<std::uint64_t>(block);
}

}  // namespace

Gpu::Gpu(int ordinal) : driver_(open_cuda_driver()) {
    const std::string which = "GPU " + std::to_string(ordinal);
    driver_.must(driver_.init(0), "no GPU: cuInit");
    driver_.must(driver_.device_get(&device_, ordinal), ("no " + which).c_str());
    void* context = nullptr;  // kept until the process ends
    driver_.must(driver_.primary_context_retain(&context, device_), which.c_str());
    driver_.must(driver_.context_set_current(context), which.c_str());
    if (attribute(kConcurrentManagedAccess) != 0) return;
    throw std::runtime_error(which + " moves managed memory as a whole only (as on WSL), where nothing could be timed");
}

void* Gpu::take(std::size_t bytes) {
    void* block = nullptr;
    driver_.must(driver_.memory_alloc_managed(&block, bytes, kAttachGlobal), "cuMemAllocManaged");
    blocks_[block] = bytes;
    driver_.must(driver_.memory_set(address(block), 0, bytes), "cuMemsetD8");
    driver_.must(driver_.context_synchronize(), "cuMemsetD8");
    return block;
}

void Gpu::give_back(void* block) noexcept {
    blocks_.erase(block);
    driver_.memory_free(address(block));
}

void Gpu::settle() {
    for (const auto& [block, bytes] : blocks_) {
        driver_.must(driver_.memory_prefetch(address(block), bytes, device_, nullptr), "cuMemPrefetchAsync");
    }
    driver_.must(driver_.context_synchronize(), "cuMemPrefetchAsync");
}

std::size_t Gpu::free_bytes() const {
    std::size_t free = 0, total = 0;
    driver_.must(driver_.memory_get_info(&free, &total), "cuMemGetInfo");
    return free;
}

std::string Gpu::headline() const {
    char name[256] = {};
    driver_.must(driver_.device_get_name(name, sizeof name, device_), "cuDeviceGetName");
    return std::string(name) + ", " + std::to_string(attribute(kMultiprocessors)) + " multiprocessors, L2 cache " +
           std::to_string(attribute(kL2Bytes) >> 20) + " MB";
}

double Gpu::measure_copies() {
    const Array<char> from = take_array<char>(*this, kCopyBytes);
    const Array<char> to = take_array<char>(*this, kCopyBytes);
    const auto copy = [&] {
        driver_.must(driver_.memory_copy(address(to.get()), address(from.get()), kCopyBytes, nullptr), "cuMemcpyDtoD");
    };
    settle();
    copy();  // what a first one costs
    driver_.must(driver_.context_synchronize(), "cuMemcpyDtoD");
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kCopies; ++i) copy();
    driver_.must(driver_.context_synchronize(), "cuMemcpyDtoD");
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    return 2.0 * kCopyBytes * kCopies / seconds.count();
}

int Gpu::attribute(int which) const {
    int value = 0;
    driver_.must(driver_.device_get_attribute(&value, which, device_), "cuDeviceGetAttribute");
    return value;
}

}  // namespace demo
