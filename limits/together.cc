#include "limits/together.h"

#include <sched.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace kvjit::limits {
namespace {

/// The start that threads make together, unless it is called off.
class Start {
public:
    explicit Start(int threads) : missing_(threads) {}

    /// Waits for all threads; false if there is no start. The last one takes the time.
    bool wait() {
        if (--missing_ == 0) {
            time_ = std::chrono::steady_clock::now();
            state_ = kGiven;
        }
        while (state_ == kAwaited) std::this_thread::yield();
        return state_ == kGiven;
    }
    void call_off() { state_ = kCalledOff; }
    std::chrono::steady_clock::time_point time() const { return time_; }

private:
    enum State { kAwaited, kGiven, kCalledOff };
    std::atomic<int> missing_;
    std::atomic<State> state_{kAwaited};
    std::chrono::steady_clock::time_point time_;
};

/// Keeps the calling thread on one of the cores that it may run on, as long as this lives. Threads that begin together
/// may else begin on one core, and share it for milliseconds before Linux moves one of them: a loop of 6 ms then seemed
/// half as fast as the machine is. Where there are more cores than a cpu_set_t holds, threads stay where they are.
class OnCore {
public:
    explicit OnCore(int number) {
        if (::sched_getaffinity(0, sizeof allowed_, &allowed_) != 0) return;
        int left = number % CPU_COUNT(&allowed_), core = 0;
        while (!CPU_ISSET(core, &allowed_) || left-- > 0) ++core;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(core, &one);
        kept_ = ::sched_setaffinity(0, sizeof one, &one) == 0;
    }
    OnCore(const OnCore&) = delete;
    OnCore& operator=(const OnCore&) = delete;
    ~OnCore() {
        if (kept_) ::sched_setaffinity(0, sizeof allowed_, &allowed_);
    }

private:
    cpu_set_t allowed_;
    bool kept_ = false;
};

void join_all(std::vector<std::thread>& threads) {
    for (std::thread& thread : threads) thread.join();
}

/// One thread for each number from 1 to `count` - 1; all of them or, with an exception, none.
template <class Task>
std::vector<std::thread> start_threads(int count, Start& start, const Task& task) {
    std::vector<std::thread> threads;
    threads.reserve(static_cast<std::size_t>(count));
    try {
        for (int i = 1; i < count; ++i) threads.emplace_back(task, i);
    } catch (const std::exception& failure) {
        start.call_off();
        join_all(threads);
        throw std::runtime_error("only " + std::to_string(threads.size() + 1) + " of " + std::to_string(count) +
                                 " threads can be had: " + failure.what());
    }
    return threads;
}

}  // namespace

double run_together(int threads, const std::function<void(int)>& task) {
    Start start(threads);
    const auto take_part = [&](int i) {
        const OnCore core(i);
        if (start.wait()) task(i);
    };
    std::vector<std::thread> others = start_threads(threads, start, take_part);
    take_part(0);
    join_all(others);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start.time()).count();
}

void wait_for_idle_pool() {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace kvjit::limits
