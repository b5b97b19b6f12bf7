// Threads whose stacks are as large as a main thread's usually is, which Clang and LLVM are tuned for.
#pragma once

#include <pthread.h>

#include <functional>

namespace kvjit::rt {

/// Runs a job on a thread of its own; where none can be started, when it is waited for. (llvm::thread would abort.)
class LargeStackThread {
public:
    explicit LargeStackThread(std::function<void()> job);
    ~LargeStackThread() { wait(); }
    LargeStackThread(const LargeStackThread&) = delete;
    LargeStackThread& operator=(const LargeStackThread&) = delete;

    /// Until the job is done.
    void wait();

private:
    std::function<void()> job_;  // none once it is done
    bool started_ = false;
    pthread_t thread_{};
};

}  // namespace kvjit::rt
