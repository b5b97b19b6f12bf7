// Of the CUDA driver API: memory and copies.
#include <cstring>

#include "ptx/driver/device.h"

using namespace kvjit::ptx;
namespace cuda = kvjit::rt::cuda;

namespace {

Device& device() {
    return Device::get();
}

void* pointer(cuda::Address address) {
    return reinterpret_cast<void*>(address);
}
u64 number(const void* memory) {
    return reinterpret_cast<u64>(memory);
}

/// Of calls that take part in no capture.
Code check_call() {
    return contexts().empty() ? cuda::kInvalidContext : device().refuse_in_capture();
}

Code copy(void* stream, void* to, const void* from, std::size_t bytes, bool to_device, bool from_device) {
    if (contexts().empty()) return cuda::kInvalidContext;
    if (to_device && !device().reachable().holds(number(to), bytes)) return kInvalidValue;
    if (from_device && !device().reachable().holds(number(from), bytes)) return kInvalidValue;
    return device().enqueue(stream, [=] { std::memcpy(to, from, bytes); });
}

/// Waits for the default stream, as calls without a stream do.
Code finish(Code code) {
    return code == cuda::kSuccess ? device().stream(nullptr)->wait() : code;
}

/// Where an end of a copy of rows begins; null: it is not all in the memory that it names.
char* begin_of(const cuda::Copy2d::Side& side, std::size_t width, std::size_t height) {
    const bool is_device = side.type == cuda::kDeviceMemory;
    char* begin = is_device ? static_cast<char*>(pointer(side.device)) : static_cast<char*>(side.host);
    begin += side.y * side.pitch + side.x;
    const bool is_there = !is_device || device().reachable().holds(number(begin), (height - 1) * side.pitch + width);
    return is_there && side.pitch >= width ? begin : nullptr;
}

}  // namespace

KVJIT_PTX_EXPORT Code cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
    *free = device().free_bytes();
    *total = device().total_bytes();
    return contexts().empty() ? cuda::kInvalidContext : cuda::kSuccess;
}
KVJIT_PTX_EXPORT Code cuMemAlloc_v2(u64* address, std::size_t bytes) {
    if (const Code code = check_call(); code != cuda::kSuccess) return code;
    return device().allocate(address, bytes);
}
/// Waits, as the real one may: work that is under way may use the memory.
KVJIT_PTX_EXPORT Code cuMemFree_v2(u64 address) {
    if (const Code code = check_call(); code != cuda::kSuccess) return code;
    const Code failed = device().wait_for_all();
    const Code released = device().release(address);
    return released == cuda::kSuccess ? failed : released;
}
KVJIT_PTX_EXPORT Code cuMemAllocAsync(u64* address, std::size_t bytes, void*) {
    return contexts().empty() ? cuda::kInvalidContext : device().allocate(address, bytes);
}
KVJIT_PTX_EXPORT Code cuMemFreeAsync(u64 address, void* stream) {
    if (!device().reachable().holds(address, 1)) return kInvalidValue;
    return device().enqueue(stream, [=] { device().release(address); });
}
KVJIT_PTX_EXPORT Code cuMemHostRegister_v2(void* memory, std::size_t bytes, unsigned) {
    device().reachable().add(number(memory), bytes);
    return cuda::kSuccess;
}
KVJIT_PTX_EXPORT Code cuMemHostUnregister(void* memory) {
    return device().reachable().remove(number(memory)) != 0 ? cuda::kSuccess : kInvalidValue;
}

KVJIT_PTX_EXPORT Code cuMemcpyHtoD_v2(u64 to, const void* from, std::size_t bytes) {
    if (const Code code = check_call(); code != cuda::kSuccess) return code;
    return finish(copy(nullptr, pointer(to), from, bytes, true, false));
}
KVJIT_PTX_EXPORT Code cuMemcpyDtoH_v2(void* to, u64 from, std::size_t bytes) {
    if (const Code code = check_call(); code != cuda::kSuccess) return code;
    return finish(copy(nullptr, to, pointer(from), bytes, false, true));
}
/// The caller's memory may be gone when the stream comes to the copy: pageable memory is staged.
KVJIT_PTX_EXPORT Code cuMemcpyHtoDAsync_v2(u64 to, const void* from, std::size_t bytes, void* stream) {
    if (const Code code = check_call(); code != cuda::kSuccess) return code;
    if (!device().reachable().holds(to, bytes)) return kInvalidValue;
    const std::string staged(static_cast<const char*>(from), bytes);
    return device().enqueue(stream, [=] { std::memcpy(pointer(to), staged.data(), staged.size()); });
}
KVJIT_PTX_EXPORT Code cuMemcpyDtoHAsync_v2(void* to, u64 from, std::size_t bytes, void* stream) {
    if (const Code code = check_call(); code != cuda::kSuccess) return code;
    return copy(stream, to, pointer(from), bytes, false, true);
}
KVJIT_PTX_EXPORT Code cuMemcpyDtoDAsync_v2(u64 to, u64 from, std::size_t bytes, void* stream) {
    return copy(stream, pointer(to), pointer(from), bytes, true, true);
}
KVJIT_PTX_EXPORT Code cuMemcpy2DAsync_v2(const cuda::Copy2d* given, void* stream) {
    const cuda::Copy2d rows = *given;
    const char* from = begin_of(rows.from, rows.width, rows.height);
    char* to = begin_of(rows.to, rows.width, rows.height);
    if (from == nullptr || to == nullptr) return kInvalidValue;
    return device().enqueue(stream, [=] {
        for (std::size_t y = 0; y < rows.height; ++y) {
            std::memcpy(to + y * rows.to.pitch, from + y * rows.from.pitch, rows.width);
        }
    });
}
KVJIT_PTX_EXPORT Code cuMemsetD8Async(u64 to, unsigned char value, std::size_t bytes, void* stream) {
    if (contexts().empty()) return cuda::kInvalidContext;
    if (!device().reachable().holds(to, bytes)) return kInvalidValue;
    return device().enqueue(stream, [=] { std::memset(pointer(to), value, bytes); });
}
KVJIT_PTX_EXPORT Code cuMemsetD2D8Async(u64 to, std::size_t pitch, unsigned char value, std::size_t width,
                                        std::size_t height, void* stream) {
    if (!device().reachable().holds(to, (height - 1) * pitch + width)) return kInvalidValue;
    return device().enqueue(stream, [=] {
        for (std::size_t y = 0; y < height; ++y) std::memset(pointer(to + y * pitch), value, width);
    });
}
