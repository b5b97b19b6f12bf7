// The one GPU behind the stand-in for libcuda.so.1: its memory, streams, errors and captures.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "cuda/driver_api.h"
#include "ptx/machine/fault.h"
#include "ptx/machine/grid.h"
#include "ptx/machine/memory.h"
#include "ptx/machine/options.h"

#define KVJIT_PTX_EXPORT extern "C" __attribute__((visibility("default")))

namespace kvjit::ptx {

using rt::cuda::Code;
// CUresult: what kvjit's own table of codes leaves out.
inline constexpr Code kInvalidValue{1}, kNotReady{600}, kCaptureInvalidated{901}, kIllegalState{401};

/// A piece of a stream's work; in a graph it is done at each launch.
using Work = std::function<void()>;

/// A captured stream's work.
struct Graph {
    std::vector<Work> nodes;
};

/// Does its work in order, on a thread of its own.
class Stream {
public:
    Stream();
    ~Stream();  // waits
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    void add(Work work);
    bool is_busy() const;
    /// Waits for all work. What of it went wrong since the last call.
    Code wait();

private:
    void serve();

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Work> queue_;
    bool is_working_ = false, is_ending_ = false;
    Code failed_ = rt::cuda::kSuccess;
    std::thread thread_;
};

class Device {
public:
    static Device& get();

    const Options& options() const { return options_; }
    Allocations& reachable() { return reachable_; }

    /// Null is the default stream. Null result: no such stream. Who waits for a stream shares it: another thread may
    /// destroy it meanwhile.
    std::shared_ptr<Stream> stream(void* handle);
    void* make_stream();
    bool destroy_stream(void* handle);
    /// Waits for all streams.
    Code wait_for_all();
    /// Does `work` in the stream's order, or makes it a node of the graph that the stream is captured into.
    Code enqueue(void* stream, Work work);

    Code begin_capture(void* stream, int mode);
    Code end_capture(void* stream, Graph** graph);
    bool is_capturing(void* stream);
    /// For calls that may synchronise. kSuccess unless a capture forbids them to this thread; then that is spoilt.
    Code refuse_in_capture();

    Code allocate(u64* address, std::size_t bytes);
    Code release(u64 address);
    std::size_t total_bytes() const { return std::size_t{16} << 30; }
    std::size_t free_bytes() const { return total_bytes() - used_; }

    /// The code for a fault, whose text is from then on the code's description.
    Code note(const Fault& fault);
    /// Null: nothing was noted.
    const char* noted(Code code);

private:
    Device();

    struct Capture {
        std::unique_ptr<Graph> graph;
        bool is_global, is_spoilt = false;
    };

    Options options_;
    Allocations reachable_;
    std::atomic<std::size_t> used_ = 0;
    std::mutex mutex_;  // guards what follows
    std::map<void*, std::shared_ptr<Stream>> streams_;
    std::map<void*, Capture> captures_;
    std::map<int, std::string> notes_;
    std::set<std::string> texts_;  // never freed: cuGetErrorString gives their addresses away
};

/// CU_STREAM_CAPTURE_MODE_... of the calling thread.
int& capture_mode();
/// The calling thread's contexts, the current one last.
std::vector<void*>& contexts();

}  // namespace kvjit::ptx
