// What an engine notes of plans and runs: lines of its log, and counts.
#pragma once

#include <chrono>

#include "call/run_work.h"
#include "kernel.h"
#include "log.h"
#include "plan.h"

namespace kvjit::rt {

/// A line about a kernel: its spec and target.
LogLine line_about(std::string_view event, const Kernel& kernel);

/// Times the making of a plan, if the log takes that.
class PlanWatch {
public:
    /// Begins. `kernel` outlives it.
    explicit PlanWatch(const Kernel& kernel) : kernel_(kernel) {
        if (kernel.log().takes(KVJIT_LOG_DEBUG)) start_ = std::chrono::steady_clock::now();
    }
    void tell(const Plan& plan, std::int64_t sequences) const;

private:
    const Kernel& kernel_;
    std::chrono::steady_clock::time_point start_;
};

/// Watches the runs of one plan.
class RunWatch {
public:
    /// `host`: the batch with arrays in host memory; null: they are the device's.
    RunWatch(KernelPtr kernel, const Plan& plan, const kvjit_batch* host);

    /// False: runs need not be watched, which is settled when the plan is made.
    bool is_on() const { return kernel_ != nullptr; }
    /// Returns what `run` does. The time is the call's, which on a GPU only launches. `tensors`: of the run; null for
    /// one of Relayout.
    template <class Run>
    gen::Result<void> run(const kvjit_tensors* tensors, std::int64_t layer_idx, const Run& run) const {
        const auto start = std::chrono::steady_clock::now();
        gen::Result<void> done = run();
        note(tensors, layer_idx, done, std::chrono::steady_clock::now() - start);
        return done;
    }

private:
    void note(const kvjit_tensors* tensors, std::int64_t layer_idx, const gen::Result<void>& done,
              std::chrono::nanoseconds taken) const;

    KernelPtr kernel_;  // null: off
    RunWork work_;
};

}  // namespace kvjit::rt
