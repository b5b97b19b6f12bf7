// Threads that help their caller with independent tasks.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>

namespace kvjit::rt {

/// A call's threads join it while it is open, and only those that have joined are waited for: a thread that the system
/// hasn't run since the call began, as others' threads have the cores, doesn't delay it. A thread without work looks
/// for some for as long as the last call said, then it sleeps. Lives until the process ends: threads may run kernels on
/// it then.
class Pool {
public:
    using Task = void (*)(void* argument, std::int64_t i);

    /// Has `threads` threads, the caller included. The others are started in the background: on a busy machine they
    /// take milliseconds to get a core. It has fewer where the system starts no more. Errors: std::bad_alloc.
    static Pool& make(std::uint32_t threads);
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    /// As they were asked for.
    std::uint32_t threads() const { return threads_; }

    /// Calls task(argument, i) for each i in 0..count-1, in order of i, on the calling thread and on those that join.
    /// Returns when all have returned. Calls of several threads take turns. `spin`: how long a thread looks for what
    /// comes next before it sleeps. Doesn't throw, allocates nothing.
    void run(Task task, void* argument, std::int64_t count, std::chrono::microseconds spin);

private:
    struct Job {
        Task task;
        void* argument;
        std::int64_t count;
        std::chrono::microseconds spin;
    };

    explicit Pool(std::uint32_t threads) : threads_(threads) {}
    ~Pool() = delete;
    void start();
    bool start_helper();
    [[noreturn]] void help();
    /// The state of a call that is open and wasn't joined in `last`'s generation.
    std::uint32_t await_call(std::uint32_t last, std::chrono::microseconds spin);
    bool join(std::uint32_t state);
    void leave();
    void close(std::chrono::microseconds spin);
    void work();

    const std::uint32_t threads_;
    std::mutex turn_;
    Job job_{};  // written while nobody has joined
    alignas(64) std::atomic<std::uint32_t> state_{0};
    alignas(64) std::atomic<std::int64_t> next_{0};
    alignas(64) std::atomic<std::uint32_t> ended_{0};  // 1: the last thread has left a closed call
};

}  // namespace kvjit::rt
