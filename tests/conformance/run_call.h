// Running a call through the public API.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "conformance/call.h"
#include "kvjit/kvjit.hpp"
#include "support/rng.h"

namespace kvjit::test {

/// The engine that all tests of a process share, so that equal programs are compiled once. Its cache folder is the one
/// that KVJIT_CACHE_DIR names.
kvjit_engine* shared_engine();
/// The target that the command line names.
const Target& chosen_target();
/// Whether its kernels multiply tiles of bfloat16, by AMX or by what stands for it.
bool multiplies_tiles();

struct RunOptions {
    std::uint32_t threads = 1;
    Order order = Order::kPool;
    std::uint64_t shuffle_seed = 1;
    int check_level = KVJIT_CHECK_FULL;
    std::int64_t split_keys =
        256;  // CUDA: a fixed number, so that bits don't depend on the batch; 0: the plan's choice
    bool stores_nothing = false;
    bool device_checks =
        false;  // CUDA, where the batch has bounds: no mirror; a kernel checks the arrays, of Merge none
    const Target* target = nullptr;  // chosen_target(), unless another one of its backend is given
};

/// Runs a plan's tasks on the thread that has them to do, in the order that a test wants, each on a soiled stack.
class OrderedExecutor {
public:
    OrderedExecutor(Order order, std::uint64_t shuffle_seed) : order_(order), rng_(shuffle_seed) {}

    /// Of so many threads, as a plan believes.
    kvjit_executor view(std::uint32_t threads) {
        return {sizeof(kvjit_executor), static_cast<std::int32_t>(threads), this, run};
    }

private:
    static void run(void* self, void (*task)(void*, std::int64_t), void* argument, std::int64_t count);

    Order order_;
    Rng rng_;
};

/// Which function refused what.
std::string error_text(const char* where, const kvjit_error& error);

struct PlanRelease {
    void operator()(kvjit_plan* plan) const { kvjit_plan_release(plan); }
};

/// A plan of a call's batch, with the executor that it runs on.
class BoundPlan {
public:
    BoundPlan(const Bound& bound, const RunOptions& options);

    /// Empty, or kvjit's error, of making the plan too.
    std::string run(const Bound& bound) const;

private:
    std::shared_ptr<OrderedExecutor> executor_;  // outlives the plan
    std::unique_ptr<kvjit_plan, PlanRelease> plan_;
    std::string error_;
};

/// Kernel, plan, run. Empty if all went well, else kvjit's error.
std::string run_bound(const Bound& bound, const RunOptions& options);
/// `call` as its case wants it run.
std::string run_call(const Call& call);

/// What attention writes on a CPU target whose program is of this variant, from fresh memory; empty where this machine
/// can't run it.
std::vector<std::byte> output_on(const char* target, kvjit_programs program, const std::string& variant,
                                 const Case& which);

}  // namespace kvjit::test
