// kvjit's work on a program's oneTBB threads. C++17, header-only, depends on kvjit.hpp and oneTBB (TBB::tbb).
#ifndef KVJIT_INTEROP_ONETBB_H
#define KVJIT_INTEROP_ONETBB_H

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/partitioner.h>
#include <tbb/task_arena.h>

#include <cstdint>

#include "kvjit/cpp/executor.hpp"

namespace kvjit::interop::onetbb {

/// Isolated: a thread that waits for the last tasks takes no other work of the program, which might run a plan, too.
inline void for_each(std::int64_t count, Task task) {
    using Range = tbb::blocked_range<std::int64_t>;
    const auto some = [task](const Range& range) {
        for (std::int64_t i = range.begin(); i < range.end(); ++i) task(i);
    };
    tbb::this_task_arena::isolate([&] { tbb::parallel_for(Range(0, count), some, tbb::simple_partitioner()); });
}

/// An executor on the threads of the arena in which kvjit_run is called. They are the program's own, have stacks of
/// 4 MiB, and sleep when there is nothing to do. Runs of several threads at once share them.
inline Executor executor() {
    return {tbb::this_task_arena::max_concurrency(), for_each};
}

/// The same in `arena`, wherever kvjit_run is called: on a part of the threads, or on those of a NUMA node. The arena
/// outlives the plans.
inline Executor executor(tbb::task_arena& arena) {
    return {arena.max_concurrency(),
            [&arena](std::int64_t count, Task task) { arena.execute([&] { for_each(count, task); }); }};
}

}  // namespace kvjit::interop::onetbb

#endif
