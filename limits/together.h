#pragma once

#include <functional>

namespace kvjit::limits {

/// Calls task(i) for each i in 0..threads-1, each on a thread of its own, the first on the calling one, and each on a
/// core of its own where there are so many; all begin together. Returns the seconds from then until the last one is
/// done. Tasks must not throw. Throws std::runtime_error, with no task begun and no thread left, where a thread can't
/// be started.
double run_together(int threads, const std::function<void(int)>& task);

/// Waits until the threads of kvjit's pool sleep, which spin for 50 us after a call (docs/threads.md): measured
/// meanwhile, whatever else the machine does would look slow.
void wait_for_idle_pool();

}  // namespace kvjit::limits
