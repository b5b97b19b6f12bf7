// Threads of the caller's for plans. Part of kvjit.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "kvjit/cpp/call.hpp"

namespace kvjit {

/// A stage of a run, as an Executor's callable gets it: task(i) does the i-th part. It doesn't throw, waits for no
/// other part, and may be copied and called on any thread with up to 1 MiB of stack, until the callable returns.
class Task {
public:
    using Function = void (*)(void* argument, std::int64_t i);
    Task(Function function, void* argument) : function_(function), argument_(argument) {}
    void operator()(std::int64_t i) const noexcept { function_(argument_, i); }

private:
    Function function_;
    void* argument_;
};

/// Any thread pool as a kvjit_executor, for kvjit_plan_options.executor and kvjit_blocks_options.executor:
///
///     kvjit::Executor executor(8, [&](std::int64_t count, kvjit::Task task) { pool.for_each(count, task); });
///     options.executor = &executor;
///
/// `for_each` calls task(i) once for each i in 0..count-1, on any threads in any order, and returns when all have
/// returned (docs/threads.md). It must not throw: an exception that leaves it ends the process by std::terminate, since
/// who has written what is unknown then. Where plans of several threads run at once, so does it. It is moved into the
/// Executor; copies of that share it. One of them outlives the plans that it was given to.
class Executor : public kvjit_executor {
public:
    /// `threads`: how many work at once, the caller included.
    template <class Run>
    Executor(std::int32_t threads, Run for_each) : owner_(std::make_shared<Run>(std::move(for_each))) {
        kvjit_executor_init(this);
        concurrency = threads;
        context = owner_.get();
        kvjit_executor::run = [](void* of, Task::Function task, void* argument, std::int64_t count) noexcept {
            (*static_cast<Run*>(of))(count, Task(task, argument));
        };
    }
    Executor(const Executor&) = default;
    Executor& operator=(const Executor&) = default;
    ~Executor() = default;

private:
    std::shared_ptr<void> owner_;
};

}  // namespace kvjit
