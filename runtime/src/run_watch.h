// What an engine's log says of plans and runs.
#pragma once

#include <chrono>

#include "kernel.h"
#include "plan.h"

namespace kvjit::rt {

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
    explicit RunWatch(KernelPtr kernel);

    /// False: runs need not be watched, which is settled when the plan is made.
    bool is_on() const { return kernel_ != nullptr; }
    /// Returns what `run` does. The time is the call's, which on a GPU only launches.
    template <class Run>
    gen::Result<void> run(std::int64_t layer_idx, const Run& run) const {
        const auto start = std::chrono::steady_clock::now();
        gen::Result<void> done = run();
        tell(layer_idx, done, std::chrono::steady_clock::now() - start);
        return done;
    }

private:
    void tell(std::int64_t layer_idx, const gen::Result<void>& done, std::chrono::duration<double> taken) const;

    KernelPtr kernel_;  // null: off
};

}  // namespace kvjit::rt
