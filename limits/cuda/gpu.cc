#include "limits/cuda/gpu.h"

#include <algorithm>
#include <utility>

namespace kvjit::gpu {

Gpu::Gpu(int ordinal) : ordinal_(ordinal) {
    check(driver().device_get(&device_, ordinal), "cuDeviceGet");
    check(driver().context_retain(&context_, device_), "cuDevicePrimaryCtxRetain");
    enter();
}

Gpu::~Gpu() {
    driver().context_release(device_);
}

int Gpu::count() {
    int count = 0;
    check(driver().device_count(&count), "cuDeviceGetCount");
    return count;
}

int Gpu::driver_version() {
    int version = 0;
    check(driver().driver_version(&version), "cuDriverGetVersion");
    return version;
}

std::string Gpu::name() const {
    char name[256] = {};
    check(driver().device_name(name, sizeof name, device_), "cuDeviceGetName");
    return name;
}

int Gpu::attribute(int which) const {
    int value = 0;
    check(driver().device_attribute(&value, which, device_), "cuDeviceGetAttribute");
    return value;
}

void Gpu::synchronize() const {
    enter();
    check(driver().context_synchronize(), "cuCtxSynchronize");
}

Gpu::MemoryInfo Gpu::memory() const {
    MemoryInfo info{};
    enter();
    check(driver().memory_info(&info.free_bytes, &info.total_bytes), "cuMemGetInfo");
    return info;
}

DeviceMemory::DeviceMemory(const Gpu& gpu, std::size_t bytes) : bytes_(bytes) {
    gpu.enter();
    check(driver().memory_allocate(&memory_, bytes), "cuMemAlloc");
}

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept {
    *this = std::move(other);
}

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    return *this;
}

DeviceMemory::~DeviceMemory() {
    if (memory_ != 0) driver().memory_free(memory_);
}

void copy_to_device(void* to, const void* from, std::size_t bytes) {
    check(driver().copy_to_device(reinterpret_cast<DevicePointer>(to), from, bytes), "cuMemcpyHtoD");
    // From pageable memory the copy may return before its last part has arrived.
    check(driver().stream_synchronize(nullptr), "cuStreamSynchronize");
}

void copy_to_host(void* to, const void* from, std::size_t bytes) {
    check(driver().copy_to_host(to, reinterpret_cast<DevicePointer>(from), bytes), "cuMemcpyDtoH");
}

void repeat_on_device(void* to, std::size_t bytes, const void* pattern, std::size_t pattern_bytes) {
    const auto base = reinterpret_cast<DevicePointer>(to);
    std::size_t done = std::min(bytes, pattern_bytes);
    if (done == 0) return;
    copy_to_device(to, pattern, done);
    while (done < bytes) {
        const std::size_t piece = std::min(done, bytes - done);
        check(driver().copy_on_device(base + done, base, piece, nullptr), "cuMemcpyDtoDAsync");
        done += piece;
    }
    check(driver().stream_synchronize(nullptr), "cuStreamSynchronize");
}

void set_on_device(void* to, unsigned char value, std::size_t bytes) {
    check(driver().set_bytes(reinterpret_cast<DevicePointer>(to), value, bytes, nullptr), "cuMemsetD8Async");
    check(driver().stream_synchronize(nullptr), "cuStreamSynchronize");
}

Library::Library(const std::string& ptx) {
    check(driver().library_load(&library_, ptx.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0),
          "cuLibraryLoadData of PTX");
}

void* Library::kernel(const char* name) const {
    void* found = nullptr;
    check(driver().library_kernel(&found, library_, name), "cuLibraryGetKernel");
    return found;
}

bool Stream::is_busy() const {
    const int result = driver().stream_query(stream_);
    if (result == kNotReady) return true;
    check(result, "cuStreamQuery");
    return false;
}

void Graph::abandon(const Stream& stream) {
    void* graph = nullptr;
    if (driver().capture_end(stream.get(), &graph) == 0 && graph != nullptr) driver().graph_destroy(graph);
}

void Graph::end(const Stream& stream) {
    check(driver().capture_end(stream.get(), &graph_), "cuStreamEndCapture");
    const int result = driver().graph_instantiate(&executable_, graph_, 0);
    if (result == 0) return;
    driver().graph_destroy(graph_);
    check(result, "cuGraphInstantiate");
}

Graph::~Graph() {
    driver().graph_executable_destroy(executable_);
    driver().graph_destroy(graph_);
}

std::size_t Graph::nodes() const {
    std::size_t count = 0;
    check(driver().graph_nodes(graph_, nullptr, &count), "cuGraphGetNodes");
    return count;
}

double Event::microseconds_since(const Event& start) const {
    float milliseconds = 0;
    check(driver().event_synchronize(event_), "cuEventSynchronize");
    check(driver().event_elapsed(&milliseconds, start.event_, event_), "cuEventElapsedTime");
    return 1000.0 * static_cast<double>(milliseconds);
}

}  // namespace kvjit::gpu
