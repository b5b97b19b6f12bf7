// Divides work among threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <future>
#include <system_error>
#include <vector>

namespace kvjit::rt {

/// False: no thread could be created.
template <class Work>
bool start_thread(std::vector<std::future<void>>& threads, const Work& work) {
    try {
        threads.push_back(std::async(std::launch::async, [&work] { work(); }));
        return true;
    } catch (const std::system_error&) {
        return false;
    }
}

/// Calls each(0) .. each(count - 1) on the calling thread and others, up to `threads` in all. Returns when all calls
/// have ended. The first exception is rethrown here; nothing is begun after it.
template <class Each>
void in_parallel(std::size_t threads, std::size_t count, const Each& each) {
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
        try {
            for (std::size_t i = next++; i < count; i = next++) each(i);
        } catch (...) {
            next = count;
            throw;
        }
    };
    std::vector<std::future<void>> others;
    while (others.size() + 1 < std::min(threads, count) && start_thread(others, work)) continue;
    work();
    for (std::future<void>& other : others) other.get();
}

}  // namespace kvjit::rt
