// Of the CUDA driver API: streams, captures, graphs, events.
#include <chrono>
#include <memory>
#include <utility>

#include "ptx/driver/device.h"

using namespace kvjit::ptx;
namespace cuda = kvjit::rt::cuda;

namespace {

Device& device() {
    return Device::get();
}

using Clock = std::chrono::steady_clock;
struct Event {
    void* stream = nullptr;
    std::shared_ptr<Clock::time_point> time = std::make_shared<Clock::time_point>();  // the stream's work writes it
};

}  // namespace

KVJIT_PTX_EXPORT Code cuStreamCreate(void** stream, unsigned) {
    if (contexts().empty()) return cuda::kInvalidContext;
    if (const Code code = device().refuse_in_capture(); code != cuda::kSuccess) return code;
    *stream = device().make_stream();
    return cuda::kSuccess;
}
KVJIT_PTX_EXPORT Code cuStreamDestroy_v2(void* stream) {
    if (const Code code = device().refuse_in_capture(); code != cuda::kSuccess) return code;
    return device().destroy_stream(stream) ? cuda::kSuccess : cuda::kInvalidContext;
}
KVJIT_PTX_EXPORT Code cuStreamSynchronize(void* handle) {
    if (device().is_capturing(handle)) return cuda::kStreamCaptureUnsupported;
    if (const Code code = device().refuse_in_capture(); code != cuda::kSuccess) return code;
    const std::shared_ptr<Stream> stream = device().stream(handle);
    return stream != nullptr ? stream->wait() : cuda::kInvalidContext;
}
KVJIT_PTX_EXPORT Code cuStreamQuery(void* handle) {
    const std::shared_ptr<Stream> stream = device().stream(handle);
    if (stream == nullptr) return cuda::kInvalidContext;
    return stream->is_busy() ? kNotReady : stream->wait();
}
KVJIT_PTX_EXPORT Code cuLaunchHostFunc(void* stream, void (*function)(void*), void* argument) {
    return device().enqueue(stream, [=] { function(argument); });
}

KVJIT_PTX_EXPORT Code cuThreadExchangeStreamCaptureMode(int* mode) {
    std::swap(*mode, capture_mode());
    return cuda::kSuccess;
}
KVJIT_PTX_EXPORT Code cuStreamIsCapturing(void* stream, int* status) {
    *status = device().is_capturing(stream) ? 1 : 0;
    return cuda::kSuccess;
}
KVJIT_PTX_EXPORT Code cuStreamBeginCapture_v2(void* stream, int mode) {
    return device().begin_capture(stream, mode);
}
KVJIT_PTX_EXPORT Code cuStreamEndCapture(void* stream, void** graph) {
    Graph* made = nullptr;
    const Code code = device().end_capture(stream, &made);
    *graph = made;
    return code;
}
KVJIT_PTX_EXPORT Code cuGraphGetNodes(void* graph, void**, std::size_t* count) {
    *count = static_cast<Graph*>(graph)->nodes.size();
    return cuda::kSuccess;
}
KVJIT_PTX_EXPORT Code cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
    *executable = new Graph(*static_cast<Graph*>(graph));
    return cuda::kSuccess;
}
KVJIT_PTX_EXPORT Code cuGraphLaunch(void* executable, void* stream) {
    for (const Work& node : static_cast<Graph*>(executable)->nodes) {
        if (const Code code = device().enqueue(stream, node); code != cuda::kSuccess) return code;
    }
    return cuda::kSuccess;
}
KVJIT_PTX_EXPORT Code cuGraphExecDestroy(void* executable) {
    delete static_cast<Graph*>(executable);
    return cuda::kSuccess;
}
KVJIT_PTX_EXPORT Code cuGraphDestroy(void* graph) {
    delete static_cast<Graph*>(graph);
    return cuda::kSuccess;
}

KVJIT_PTX_EXPORT Code cuEventCreate(void** event, unsigned) {
    *event = new Event;
    return cuda::kSuccess;
}
KVJIT_PTX_EXPORT Code cuEventDestroy_v2(void* event) {
    delete static_cast<Event*>(event);
    return cuda::kSuccess;
}
KVJIT_PTX_EXPORT Code cuEventRecord(void* event, void* stream) {
    auto& recorded = *static_cast<Event*>(event);
    recorded.stream = stream;
    return device().enqueue(stream, [time = recorded.time] { *time = Clock::now(); });
}
KVJIT_PTX_EXPORT Code cuEventSynchronize(void* event) {
    const std::shared_ptr<Stream> stream = device().stream(static_cast<Event*>(event)->stream);
    return stream != nullptr ? stream->wait() : cuda::kInvalidContext;
}
KVJIT_PTX_EXPORT Code cuEventElapsedTime(float* milliseconds, void* start, void* end) {
    const auto passed = *static_cast<Event*>(end)->time - *static_cast<Event*>(start)->time;
    *milliseconds = std::chrono::duration<float, std::milli>(passed).count();
    return cuda::kSuccess;
}
