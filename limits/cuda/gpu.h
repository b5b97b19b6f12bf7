// A GPU and what tests and benchmarks make on it, with owners. Whatever the driver refuses is thrown as
// std::runtime_error.
#pragma once

#include <cstddef>
#include <string>

#include "limits/cuda/driver.h"

namespace kvjit::gpu {

/// A device with its primary context, which enter() makes the calling thread's.
class Gpu {
public:
    explicit Gpu(int ordinal);
    ~Gpu();
    Gpu(const Gpu&) = delete;
    Gpu& operator=(const Gpu&) = delete;

    static int count();
    /// CUDA's version that the driver brings: 13000 is 13.0.
    static int driver_version();

    void enter() const { check(driver().context_set(context_), "cuCtxSetCurrent"); }
    void* context() const { return context_; }
    int ordinal() const { return ordinal_; }
    std::string target() const { return "cuda:" + std::to_string(ordinal_); }
    std::string name() const;
    int attribute(int which) const;
    /// 90 is compute capability 9.0.
    int capability() const { return attribute(kCapabilityMajor) * 10 + attribute(kCapabilityMinor); }
    /// Waits for all that runs on the device.
    void synchronize() const;

    struct MemoryInfo {
        std::size_t free_bytes, total_bytes;
    };
    MemoryInfo memory() const;

private:
    int ordinal_;
    int device_ = 0;
    void* context_ = nullptr;
};

/// Device memory; move-only.
class DeviceMemory {
public:
    DeviceMemory() = default;
    DeviceMemory(const Gpu& gpu, std::size_t bytes);
    DeviceMemory(DeviceMemory&& other) noexcept;
    DeviceMemory& operator=(DeviceMemory&& other) noexcept;
    ~DeviceMemory();
    void* data() const { return reinterpret_cast<void*>(memory_); }
    std::size_t size() const { return bytes_; }

private:
    DevicePointer memory_ = 0;
    std::size_t bytes_ = 0;
};

/// Synchronous copies: done on the device when they return, for every stream.
void copy_to_device(void* to, const void* from, std::size_t bytes);
void copy_to_host(void* to, const void* from, std::size_t bytes);
/// Puts the `pattern_bytes` at `pattern`, which lies in host memory, into device memory again and again; 0 of them put
/// nothing. The same.
void repeat_on_device(void* to, std::size_t bytes, const void* pattern, std::size_t pattern_bytes);
/// The same for one byte.
void set_on_device(void* to, unsigned char value, std::size_t bytes);

/// Does not synchronise with the default stream.
class Stream {
public:
    Stream() { check(driver().stream_create(&stream_, kNonBlocking), "cuStreamCreate"); }
    ~Stream() { driver().stream_destroy(stream_); }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    void* get() const { return stream_; }
    void synchronize() const { check(driver().stream_synchronize(stream_), "cuStreamSynchronize"); }
    /// Whether something that was put on the stream isn't done yet.
    bool is_busy() const;

private:
    void* stream_ = nullptr;
};

/// Kernels that the driver compiled from PTX.
class Library {
public:
    /// Where the driver's compiler is missing, or forbidden by CUDA_DISABLE_PTX_JIT, it refuses.
    explicit Library(const std::string& ptx);
    ~Library() { driver().library_unload(library_); }
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;

    /// Valid as long as the library.
    void* kernel(const char* name) const;

private:
    void* library_ = nullptr;
};

/// A graph of what `record` puts on the stream. Capturing is in global mode: whatever could synchronise, an allocation
/// too, breaks it.
class Graph {
public:
    template <class Record>
    Graph(const Stream& stream, const Record& record) {
        check(driver().capture_begin(stream.get(), kCaptureGlobal), "cuStreamBeginCapture");
        try {
            record();
        } catch (...) {
            abandon(stream);
            throw;
        }
        end(stream);
    }
    ~Graph();
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;

    std::size_t nodes() const;
    void launch(const Stream& stream) const {
        check(driver().graph_launch(executable_, stream.get()), "cuGraphLaunch");
    }

private:
    static void abandon(const Stream& stream);
    void end(const Stream& stream);

    void* graph_ = nullptr;
    void* executable_ = nullptr;
};

/// A point in a stream's time.
class Event {
public:
    Event() { check(driver().event_create(&event_, 0), "cuEventCreate"); }
    ~Event() { driver().event_destroy(event_); }
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;

    void record(const Stream& stream) const { check(driver().event_record(event_, stream.get()), "cuEventRecord"); }
    /// Microseconds from `start` to this one; waits for both.
    double microseconds_since(const Event& start) const;

private:
    void* event_ = nullptr;
};

}  // namespace kvjit::gpu
