#include "cpu/pool.h"

#include <system_error>
#include <thread>

namespace kvjit::rt {
namespace {

// A state: how many threads have joined, whether more may, and the call's generation in the remaining bits. A helper
// that misses all of its generations until one returns misses that call, too, and no call needs it.
constexpr std::uint32_t kJoined = (1u << 15) - 1, kOpen = 1u << 15, kGeneration = 1u << 16;

constexpr std::uint32_t generation(std::uint32_t state) {
    return state & ~(kGeneration - 1);
}

/// How often a spinning thread looks between two readings of the clock.
constexpr int kLooks = 32;

/// Looks until is_ready() or the time is over. Whether it is ready.
template <class IsReady>
bool spin_until(const IsReady& is_ready, std::chrono::microseconds time) {
    if (is_ready()) return true;
    if (time.count() == 0) return false;
    const auto end = std::chrono::steady_clock::now() + time;
    do {
        for (int look = 0; look < kLooks; ++look) {
            __builtin_ia32_pause();
            if (is_ready()) return true;
        }
    } while (std::chrono::steady_clock::now() < end);
    return false;
}

/// False: the system has no more threads, or no memory for one.
template <class Body>
bool start_thread(const Body& body) {
    try {
        std::thread(body).detach();
        return true;
    } catch (const std::exception&) {
        return false;
    }
}

}  // namespace

Pool& Pool::make(std::uint32_t threads) {
    Pool& pool = *new Pool(threads);
    if (threads > 1) start_thread([&pool] { pool.start(); });
    return pool;
}

/// The thread that starts the others becomes the last of them.
void Pool::start() {
    for (std::uint32_t helper = 2; helper < threads_ && start_helper(); ++helper) continue;
    help();
}

bool Pool::start_helper() {
    return start_thread([this] { help(); });
}

void Pool::help() {
    std::uint32_t last = 0;
    std::chrono::microseconds spin{0};
    for (;;) {
        const std::uint32_t state = await_call(last, spin);
        if (!join(state)) continue;
        last = generation(state);
        spin = job_.spin;
        work();
        leave();
    }
}

std::uint32_t Pool::await_call(std::uint32_t last, std::chrono::microseconds spin) {
    std::uint32_t state = 0;
    const auto is_new = [&] {
        state = state_.load();
        return (state & kOpen) != 0 && generation(state) != last;
    };
    while (!spin_until(is_new, spin)) state_.wait(state);
    return state;
}

bool Pool::join(std::uint32_t state) {
    return state_.compare_exchange_strong(state, state + 1);
}

/// The last one to leave a closed call ends it.
void Pool::leave() {
    const std::uint32_t left = state_.fetch_sub(1) - 1;
    if ((left & (kOpen | kJoined)) != 0) return;
    ended_ = 1;
    ended_.notify_one();
}

void Pool::work() {
    const Job job = job_;
    for (std::int64_t i = next_++; i < job.count; i = next_++) job.task(job.argument, i);
}

/// There is nothing left to begin: keeps others from joining, and waits for those that have.
void Pool::close(std::chrono::microseconds spin) {
    if ((state_.fetch_and(~kOpen) & kJoined) == 0) return;
    while (!spin_until([&] { return ended_ == 1; }, spin)) ended_.wait(0);
}

void Pool::run(Task task, void* argument, std::int64_t count, std::chrono::microseconds spin) {
    if (count == 1 || threads_ == 1) {
        for (std::int64_t i = 0; i < count; ++i) task(argument, i);
        return;
    }
    const std::lock_guard turn(turn_);
    job_ = {task, argument, count, spin};
    next_ = 0;
    ended_ = 0;
    state_ = generation(state_) + kGeneration + kOpen;
    state_.notify_all();
    work();
    close(spin);
}

}  // namespace kvjit::rt
