#include "ptx/driver/device.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace kvjit::ptx {
namespace {

constexpr int kGlobalCapture = 0;

Options options_of_environment() {
    const char* text = std::getenv("PTX_MACHINE");
    try {
        return parse_options(text == nullptr ? "" : text);
    } catch (const Fault& fault) {
        std::fprintf(stderr, "PTX_MACHINE: %s\n", fault.what());
        std::exit(2);
    }
}

Code code_of(FaultKind kind) {
    switch (kind) {
        case FaultKind::kText:
            return rt::cuda::kInvalidImage;
        case FaultKind::kMisaligned:
            return rt::cuda::kMisalignedAddress;
        case FaultKind::kOutOfBounds:
            return rt::cuda::kIllegalAddress;
        case FaultKind::kUnwritten:
        case FaultKind::kUndefined:
        case FaultKind::kRace:
        case FaultKind::kApart:
            return rt::cuda::kLaunchFailed;
    }
    return rt::cuda::kLaunchFailed;
}

}  // namespace

int& capture_mode() {
    thread_local int mode = kGlobalCapture;
    return mode;
}

std::vector<void*>& contexts() {
    thread_local std::vector<void*> stack;
    return stack;
}

// ---- Streams -----------------------------------------------------------------------------------------------------

Stream::Stream() : thread_([this] { serve(); }) {}

Stream::~Stream() {
    {
        const std::lock_guard lock(mutex_);
        is_ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void Stream::add(Work work) {
    {
        const std::lock_guard lock(mutex_);
        queue_.push_back(std::move(work));
    }
    changed_.notify_all();
}

bool Stream::is_busy() const {
    const std::lock_guard lock(mutex_);
    return is_working_ || !queue_.empty();
}

Code Stream::wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !is_working_ && queue_.empty(); });
    return std::exchange(failed_, rt::cuda::kSuccess);
}

void Stream::serve() {
    std::unique_lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [&] { return is_ending_ || !queue_.empty(); });
        if (queue_.empty()) return;
        const Work work = std::move(queue_.front());
        queue_.pop_front();
        is_working_ = true;
        lock.unlock();
        Code code = rt::cuda::kSuccess;
        try {
            work();
        } catch (const Fault& fault) {
            code = Device::get().note(fault);
        }
        lock.lock();
        is_working_ = false;
        if (failed_ == rt::cuda::kSuccess) failed_ = code;
        changed_.notify_all();
    }
}

// ---- The device --------------------------------------------------------------------------------------------------

Device::Device() : options_(options_of_environment()) {
    streams_[nullptr] = std::make_shared<Stream>();
}

/// Never destroyed: its threads would outlive what they use at the process's end.
Device& Device::get() {
    static Device& device = *new Device;
    return device;
}

std::shared_ptr<Stream> Device::stream(void* handle) {
    const std::lock_guard lock(mutex_);
    const auto found = streams_.find(handle);
    return found == streams_.end() ? nullptr : found->second;
}

void* Device::make_stream() {
    auto made = std::make_shared<Stream>();
    const std::lock_guard lock(mutex_);
    void* handle = made.get();
    streams_[handle] = std::move(made);
    return handle;
}

bool Device::destroy_stream(void* handle) {
    std::shared_ptr<Stream> ending;  // its end waits, without the lock
    const std::lock_guard lock(mutex_);
    const auto found = streams_.find(handle);
    if (handle == nullptr || found == streams_.end()) return false;
    ending = std::move(found->second);
    streams_.erase(found);
    return true;
}

Code Device::wait_for_all() {
    std::vector<std::shared_ptr<Stream>> all;
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [handle, stream] : streams_) all.push_back(stream);
    }
    Code code = rt::cuda::kSuccess;
    for (const std::shared_ptr<Stream>& stream : all) {
        const Code failed = stream->wait();
        if (code == rt::cuda::kSuccess) code = failed;
    }
    return code;
}

Code Device::enqueue(void* handle, Work work) {
    {
        const std::lock_guard lock(mutex_);
        if (const auto capture = captures_.find(handle); capture != captures_.end()) {
            if (capture->second.is_spoilt) return kCaptureInvalidated;
            capture->second.graph->nodes.push_back(std::move(work));
            return rt::cuda::kSuccess;
        }
    }
    const std::shared_ptr<Stream> found = stream(handle);
    if (found == nullptr) return rt::cuda::kInvalidContext;
    found->add(std::move(work));
    return rt::cuda::kSuccess;
}

// ---- Captures ----------------------------------------------------------------------------------------------------

Code Device::begin_capture(void* handle, int mode) {
    if (handle == nullptr || stream(handle) == nullptr) return kInvalidValue;
    const std::lock_guard lock(mutex_);
    if (captures_.contains(handle)) return kIllegalState;
    captures_[handle] = {std::make_unique<Graph>(), mode == kGlobalCapture};
    return rt::cuda::kSuccess;
}

Code Device::end_capture(void* handle, Graph** graph) {
    const std::lock_guard lock(mutex_);
    const auto capture = captures_.find(handle);
    if (capture == captures_.end()) return kInvalidValue;
    const bool is_spoilt = capture->second.is_spoilt;
    *graph = is_spoilt ? nullptr : capture->second.graph.release();
    captures_.erase(capture);
    return is_spoilt ? kCaptureInvalidated : rt::cuda::kSuccess;
}

bool Device::is_capturing(void* handle) {
    const std::lock_guard lock(mutex_);
    return captures_.contains(handle);
}

Code Device::refuse_in_capture() {
    if (capture_mode() == rt::cuda::kCaptureRelaxed) return rt::cuda::kSuccess;
    const std::lock_guard lock(mutex_);
    bool is_refused = false;
    for (auto& [handle, capture] : captures_) {
        if (!capture.is_global) continue;
        capture.is_spoilt = is_refused = true;
    }
    return is_refused ? rt::cuda::kStreamCaptureUnsupported : rt::cuda::kSuccess;
}

// ---- Memory ------------------------------------------------------------------------------------------------------

Code Device::allocate(u64* address, std::size_t bytes) {
    constexpr std::size_t kAlignment = 256;
    if (bytes == 0) return kInvalidValue;
    if (bytes > free_bytes()) return rt::cuda::kOutOfMemory;
    void* made = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
    if (made == nullptr) return rt::cuda::kOutOfMemory;
    std::memset(made, 0xff, bytes);  // NaN, and no index: nobody may count on what was there
    *address = reinterpret_cast<u64>(made);
    reachable_.add(*address, bytes);
    used_ += bytes;
    return rt::cuda::kSuccess;
}

Code Device::release(u64 address) {
    const u64 bytes = reachable_.remove(address);
    if (bytes == 0) return kInvalidValue;
    std::free(reinterpret_cast<void*>(address));
    used_ -= bytes;
    return rt::cuda::kSuccess;
}

// ---- Errors ------------------------------------------------------------------------------------------------------

Code Device::note(const Fault& fault) {
    const Code code = code_of(fault.kind());
    const std::lock_guard lock(mutex_);
    notes_[code] = fault.what();
    return code;
}

const char* Device::noted(Code code) {
    const std::lock_guard lock(mutex_);
    const auto found = notes_.find(code);
    return found == notes_.end() ? nullptr : texts_.insert(found->second).first->c_str();
}

}  // namespace kvjit::ptx
