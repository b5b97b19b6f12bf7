// A libcuda.so.1 without a GPU: it checks that it is called as the driver's documentation says, counts what lives, and
// fails when it is told to. "Device memory" is the process's own.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cuda/driver_api.h"

namespace kvjit::test {

struct FakeLaunch {
    void* kernel;
    std::vector<unsigned> grid;  // x, y, z, threads in x, y, z
    unsigned shared_bytes;
    void* stream;
    void* context;
    std::string arguments;  // the bytes
};

/// What the library pretends to have, and what it has seen. Tests set and read it between calls.
struct FakeCuda {
    // A machine with two GPUs.
    int version = 13000;
    int gpus = 2;
    int major = 9, minor = 0;
    int max_shared_bytes = 227 * 1024;
    std::set<std::string> kernels = {"kvjit_store"};  // what every cubin has
    std::size_t argument_bytes = 0;                   // what every kernel declares

    /// The call after so many others fails with this code; 0: none does.
    int fail_at = 0;
    rt::cuda::Code fail_code = rt::cuda::kSuccess;

    void* capturing = nullptr;  // a stream under capture, in global mode: what it forbids, it forbids to all threads

    /// Streams that the GPU is busy on: what comes behind is done when somebody waits for the stream.
    std::map<void*, std::vector<std::function<void()>>> busy;

    /// What a test calls the GPU's memory, begin and bytes, beside what was allocated. Where it says any, copies to and
    /// from the GPU must be.
    std::map<std::size_t, std::size_t> device_memory;

    std::vector<std::string> calls;                       // names, in order
    std::vector<std::pair<std::string, void*>> enqueued;  // name and stream, in order
    std::vector<FakeLaunch> launches;
    std::vector<std::string> misuses;  // what the real driver would answer with a crash or a corrupted capture
    std::set<void*> allocations, libraries, streams;
    std::map<int, int> retained;                          // by device
    std::map<std::pair<void*, int>, int> allowed_shared;  // by kernel and device
    std::set<std::pair<void*, void*>> loaded;             // kernel, context
    std::mutex mutex;

    int live() const {
        std::size_t count = allocations.size() + libraries.size() + streams.size();
        for (const auto& [device, references] : retained) count += static_cast<std::size_t>(references);
        return static_cast<int>(count);
    }
};

/// The state, the same in test and library.
extern "C" __attribute__((visibility("default"))) FakeCuda* fake_cuda();
/// As after a fresh start; the calling thread has no current context.
extern "C" __attribute__((visibility("default"))) void fake_cuda_reset();
/// Makes a context current on this thread, as the caller of a library would: `context` null is the primary one.
extern "C" __attribute__((visibility("default"))) void* fake_cuda_make_current(int device, void* context);
/// What is current on this thread; null: nothing.
extern "C" __attribute__((visibility("default"))) void* fake_cuda_current();

}  // namespace kvjit::test
