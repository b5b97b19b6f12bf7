// Kernels, memory and streams.
#include <cstdlib>
#include <cstring>
#include <functional>
#include <utility>

#include "fake_state.h"

using namespace kvjit::test;
using cuda::Code;

namespace {

constexpr int kPlainSharedBytes = 48 * 1024;
constexpr Code kInvalidValue{1};

struct FakeKernel {
    std::string name;
};
struct FakeLibrary {
    std::string code;  // a copy: the real one takes one too
    FakeKernel kernel;
};

int& allowed_shared(FakeCuda& state, void* kernel, int device) {
    return state.allowed_shared.try_emplace({kernel, device}, kPlainSharedBytes).first->second;
}

/// The stream is the default one, or was made and not destroyed, or is the caller's own, which begin at 0x2000.
bool is_stream(const FakeCuda& state, void* stream) {
    return stream == nullptr || state.streams.contains(stream) || reinterpret_cast<std::size_t>(stream) < 0x3000;
}

/// Does `work` in the order of the stream. In a capture it would become a part of the graph, done at each replay.
Code enqueue(Call& call, const char* name, cuda::Stream stream, std::function<void()> work) {
    FakeCuda& state = call.state;
    if (!is_stream(state, stream)) call.misuse("on an unknown stream");
    if (stream == nullptr && state.capturing != nullptr) return cuda::kStreamCaptureImplicit;
    if (stream != nullptr && state.capturing == stream) call.misuse("goes into a graph");
    state.enqueued.emplace_back(name, stream);
    if (const auto busy = state.busy.find(stream); busy != state.busy.end()) {
        busy->second.push_back(std::move(work));
    } else {
        work();
    }
    return cuda::kSuccess;
}

/// Which memory a copy's end is must be what the call says.
void check_end(Call& call, const void* begin, std::size_t bytes, bool device) {
    const auto& memory = call.state.device_memory;
    if (memory.empty()) return;
    const auto address = reinterpret_cast<std::size_t>(begin);
    auto range = memory.upper_bound(address);
    const bool inside = range != memory.begin() && (--range, address + bytes <= range->first + range->second);
    if (inside != device)
        call.misuse(device ? "takes host memory for the GPU's" : "takes the GPU's memory for the host's");
}

/// An end of a copy in two dimensions.
char* begin_of(Call& call, const cuda::Copy2d::Side& side, std::size_t width, std::size_t height) {
    const bool device = side.type == cuda::kDeviceMemory;
    if (!device && side.type != cuda::kHostMemory) call.misuse("of an unknown type of memory");
    if (side.pitch < width || side.pitch > 0x7fffffff) call.misuse("of rows that overlap or are too far apart");
    char* begin = device ? reinterpret_cast<char*>(side.device) : static_cast<char*>(side.host);
    begin += side.y * side.pitch + side.x;
    check_end(call, begin, (height - 1) * side.pitch + width, device);
    return begin;
}

}  // namespace

KVJIT_FAKE_EXPORT Code cuLibraryLoadData(cuda::Library* library, const void* code, void* jit_options, void** jit_values,
                                         unsigned jit_count, void* options, void** values, unsigned count) {
    Call call("cuLibraryLoadData");
    if (jit_options || jit_values || jit_count != 0 || options || values || count != 0) call.misuse("with options");
    if (call.forbidden_in_capture().fails()) return call.code();
    auto* made = new FakeLibrary{std::string(static_cast<const char*>(code), 4), {}};
    call.state.libraries.insert(made);
    *library = reinterpret_cast<cuda::Library>(made);
    return cuda::kSuccess;
}
KVJIT_FAKE_EXPORT Code cuLibraryUnload(cuda::Library library) {
    Call call("cuLibraryUnload");
    call.forbidden_in_capture();
    if (call.state.libraries.erase(library) == 0) {
        call.misuse("of an unknown library");
    } else {
        delete reinterpret_cast<FakeLibrary*>(library);
    }
    return call.code();
}
KVJIT_FAKE_EXPORT Code cuLibraryGetKernel(cuda::Kernel* kernel, cuda::Library library, const char* name) {
    Call call("cuLibraryGetKernel");
    if (call.fails()) return call.code();
    if (!call.state.kernels.contains(name)) return cuda::kNotFound;
    auto* owner = reinterpret_cast<FakeLibrary*>(library);
    owner->kernel.name = name;
    *kernel = reinterpret_cast<cuda::Kernel>(&owner->kernel);
    return cuda::kSuccess;
}
KVJIT_FAKE_EXPORT Code cuKernelGetFunction(cuda::Function* function, cuda::Kernel kernel) {
    Call call("cuKernelGetFunction");
    if (call.needs_context().forbidden_in_capture().fails()) return call.code();
    *function = reinterpret_cast<cuda::Function>(kernel);
    return cuda::kSuccess;
}
KVJIT_FAKE_EXPORT Code cuFuncLoad(cuda::Function function) {
    Call call("cuFuncLoad");
    if (call.needs_context().forbidden_in_capture().fails()) return call.code();
    call.state.loaded.insert({function, fake_cuda_current()});
    return cuda::kSuccess;
}
KVJIT_FAKE_EXPORT Code cuKernelGetAttribute(int* value, cuda::FunctionAttribute which, cuda::Kernel kernel,
                                            cuda::Device device) {
    Call call("cuKernelGetAttribute");
    if (which != cuda::kMaxDynamicSharedSizeBytes) call.misuse("of another attribute");
    if (!call.fails()) *value = allowed_shared(call.state, kernel, device);
    return call.code();
}
KVJIT_FAKE_EXPORT Code cuKernelSetAttribute(cuda::FunctionAttribute which, int value, cuda::Kernel kernel,
                                            cuda::Device device) {
    Call call("cuKernelSetAttribute");
    if (which != cuda::kMaxDynamicSharedSizeBytes || value > call.state.max_shared_bytes) return kInvalidValue;
    if (!call.fails()) allowed_shared(call.state, kernel, device) = value;
    return call.code();
}
KVJIT_FAKE_EXPORT Code cuLaunchKernel(cuda::Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                      cuda::Stream stream, void** parameters, void** extra) {
    Call call("cuLaunchKernel");
    if (call.needs_context().fails()) return call.code();
    if (!is_stream(call.state, stream)) call.misuse("on an unknown stream");
    const int allowed = allowed_shared(call.state, function, device_of(fake_cuda_current()));
    if (static_cast<int>(shared_bytes) > allowed || grid_x * grid_y * grid_z == 0 || extra) return kInvalidValue;
    const std::string arguments(static_cast<const char*>(parameters[0]), call.state.argument_bytes);
    call.state.launches.push_back({function,
                                   {grid_x, grid_y, grid_z, block_x, block_y, block_z},
                                   shared_bytes,
                                   stream,
                                   fake_cuda_current(),
                                   arguments});
    call.state.enqueued.emplace_back("cuLaunchKernel", stream);
    return cuda::kSuccess;
}

KVJIT_FAKE_EXPORT Code cuMemAlloc_v2(cuda::Address* address, std::size_t bytes) {
    Call call("cuMemAlloc");
    if (call.needs_context().forbidden_in_capture().fails()) return call.code();
    if (bytes == 0) return kInvalidValue;
    void* made = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (made == nullptr) return cuda::kOutOfMemory;
    call.state.allocations.insert(made);
    *address = reinterpret_cast<cuda::Address>(made);
    return cuda::kSuccess;
}
KVJIT_FAKE_EXPORT Code cuMemFree_v2(cuda::Address address) {
    Call call("cuMemFree");
    if (call.needs_context().forbidden_in_capture().fails()) return call.code();
    auto* memory = reinterpret_cast<void*>(address);
    if (call.state.allocations.erase(memory) == 0) {
        call.misuse("of unknown memory");
    } else {
        std::free(memory);
    }
    return cuda::kSuccess;
}
KVJIT_FAKE_EXPORT Code cuMemcpyHtoDAsync_v2(cuda::Address to, const void* from, std::size_t bytes,
                                            cuda::Stream stream) {
    Call call("cuMemcpyHtoDAsync");
    if (call.needs_context().forbidden_in_capture().fails()) return call.code();  // pageable memory may be waited for
    check_end(call, from, bytes, false);
    check_end(call, reinterpret_cast<void*>(to), bytes, true);
    const std::string staged(static_cast<const char*>(from), bytes);  // the caller's may be gone by then
    return enqueue(call, "cuMemcpyHtoDAsync", stream,
                   [=] { std::memcpy(reinterpret_cast<void*>(to), staged.data(), staged.size()); });
}
KVJIT_FAKE_EXPORT Code cuMemcpyDtoHAsync_v2(void* to, cuda::Address from, std::size_t bytes, cuda::Stream stream) {
    Call call("cuMemcpyDtoHAsync");
    if (call.needs_context().forbidden_in_capture().fails()) return call.code();
    check_end(call, reinterpret_cast<void*>(from), bytes, true);
    check_end(call, to, bytes, false);
    return enqueue(call, "cuMemcpyDtoHAsync", stream,
                   [=] { std::memcpy(to, reinterpret_cast<const void*>(from), bytes); });
}
KVJIT_FAKE_EXPORT Code cuMemsetD8Async(cuda::Address to, unsigned char value, std::size_t count, cuda::Stream stream) {
    Call call("cuMemsetD8Async");
    if (call.needs_context().fails()) return call.code();
    check_end(call, reinterpret_cast<void*>(to), count, true);
    return enqueue(call, "cuMemsetD8Async", stream, [=] { std::memset(reinterpret_cast<void*>(to), value, count); });
}
KVJIT_FAKE_EXPORT Code cuMemcpyDtoDAsync_v2(cuda::Address to, cuda::Address from, std::size_t bytes,
                                            cuda::Stream stream) {
    Call call("cuMemcpyDtoDAsync");
    if (call.needs_context().fails()) return call.code();
    check_end(call, reinterpret_cast<void*>(from), bytes, true);
    check_end(call, reinterpret_cast<void*>(to), bytes, true);
    return enqueue(call, "cuMemcpyDtoDAsync", stream,
                   [=] { std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes); });
}
KVJIT_FAKE_EXPORT Code cuMemcpy2DAsync_v2(const cuda::Copy2d* given, cuda::Stream stream) {
    Call call("cuMemcpy2DAsync");
    if (call.needs_context().forbidden_in_capture().fails()) return call.code();
    const cuda::Copy2d copy = *given;
    if (copy.width == 0 || copy.height == 0) call.misuse("of nothing");
    const char* from = begin_of(call, copy.from, copy.width, copy.height);
    char* to = begin_of(call, copy.to, copy.width, copy.height);
    return enqueue(call, "cuMemcpy2DAsync", stream, [=] {
        for (std::size_t y = 0; y < copy.height; ++y) {
            std::memcpy(to + y * copy.to.pitch, from + y * copy.from.pitch, copy.width);
        }
    });
}
KVJIT_FAKE_EXPORT Code cuMemsetD2D8Async(cuda::Address to, std::size_t pitch, unsigned char value, std::size_t width,
                                         std::size_t height, cuda::Stream stream) {
    Call call("cuMemsetD2D8Async");
    if (call.needs_context().fails()) return call.code();
    const cuda::Copy2d::Side side{0, 0, cuda::kDeviceMemory, nullptr, to, nullptr, pitch};
    char* begin = begin_of(call, side, width, height);
    return enqueue(call, "cuMemsetD2D8Async", stream, [=] {
        for (std::size_t y = 0; y < height; ++y) std::memset(begin + y * pitch, value, width);
    });
}
KVJIT_FAKE_EXPORT Code cuMemAllocAsync(cuda::Address* address, std::size_t bytes, cuda::Stream stream) {
    Call call("cuMemAllocAsync");
    if (call.needs_context().fails()) return call.code();
    if (bytes == 0) return kInvalidValue;
    void* made = std::malloc(bytes);
    call.state.allocations.insert(made);
    if (!call.state.device_memory.empty()) call.state.device_memory[reinterpret_cast<std::size_t>(made)] = bytes;
    *address = reinterpret_cast<cuda::Address>(made);
    return enqueue(call, "cuMemAllocAsync", stream, [] {});
}
KVJIT_FAKE_EXPORT Code cuMemFreeAsync(cuda::Address address, cuda::Stream stream) {
    Call call("cuMemFreeAsync");
    auto* memory = reinterpret_cast<void*>(address);
    FakeCuda& state = call.state;
    if (state.allocations.erase(memory) == 0) call.misuse("of unknown memory");
    const Code done = enqueue(call, "cuMemFreeAsync", stream, [&state, memory] {
        state.device_memory.erase(reinterpret_cast<std::size_t>(memory));
        std::free(memory);
    });
    return call.needs_context().fails() ? call.code() : done;  // what fails is what went wrong before
}

KVJIT_FAKE_EXPORT Code cuStreamCreate(cuda::Stream* stream, cuda::StreamFlags flags) {
    Call call("cuStreamCreate");
    if (call.needs_context().forbidden_in_capture().fails()) return call.code();
    if (flags != cuda::kStreamNonBlocking) call.misuse("that waits for the default stream");
    void* made = std::malloc(1);
    call.state.streams.insert(made);
    *stream = static_cast<cuda::Stream>(made);
    return cuda::kSuccess;
}
KVJIT_FAKE_EXPORT Code cuStreamDestroy_v2(cuda::Stream stream) {
    Call call("cuStreamDestroy");
    call.forbidden_in_capture();
    if (call.state.streams.erase(stream) == 0) {
        call.misuse("of an unknown stream");
    } else {
        std::free(stream);
    }
    return call.code();
}
KVJIT_FAKE_EXPORT Code cuStreamSynchronize(cuda::Stream stream) {
    Call call("cuStreamSynchronize");
    if (!is_stream(call.state, stream)) call.misuse("on an unknown stream");
    if (call.state.capturing == stream && stream != nullptr) call.misuse("spoils a capture");
    if (call.needs_context().forbidden_in_capture().fails()) return call.code();
    if (const auto busy = call.state.busy.find(stream); busy != call.state.busy.end()) {
        for (const std::function<void()>& work : busy->second) work();
        busy->second.clear();
    }
    return cuda::kSuccess;
}
KVJIT_FAKE_EXPORT Code cuStreamIsCapturing(cuda::Stream stream, cuda::CaptureStatus* status) {
    Call call("cuStreamIsCapturing");
    if (call.fails()) return call.code();
    if (stream == nullptr && call.state.capturing != nullptr) return cuda::kStreamCaptureImplicit;
    *status = call.state.capturing == stream && stream != nullptr ? cuda::CaptureStatus{1} : cuda::kCaptureNone;
    return cuda::kSuccess;
}
// Always works, so that what it brackets can be told to fail.
KVJIT_FAKE_EXPORT Code cuThreadExchangeStreamCaptureMode(cuda::CaptureMode* mode) {
    std::swap(*mode, capture_mode());
    return cuda::kSuccess;
}
