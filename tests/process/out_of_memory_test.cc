// Whichever allocation fails between an engine and its first run from a warm cache, that is an error, and the same
// engine serves when there is memory again.
#include <doctest/doctest.h>

#include <string>

#include "allocation_counter.h"
#include "call.h"
#include "support/child_process.h"
#include "support/temporary_folder.h"

using namespace kvjit::test;

namespace {

/// Each n would take minutes. Threads make the order vary, so that runs differ in what they meet.
constexpr std::int64_t kStride = 37;

enum Seen { kRight = 0, kServed, kWrongStatus, kNotServedLater, kWrongOutput };

bool is_right(kvjit_status status) {
    return status == KVJIT_OUT_OF_MEMORY || status == KVJIT_NOT_FOUND;
}

/// Fills the folder, in a process of its own: one that has opened Clang is slow to fork.
bool warm(kvjit::EngineOptions options) {
    const auto fill = [&] {
        const auto kernel = call_kernel(options);
        return kernel && kernel->prepare() ? 0 : 1;
    };
    return in_child(fill) == 0;
}

/// What the call gives.
std::uint64_t hash_with_memory(const kvjit::EngineOptions& options) {
    const ApiCall call = make_call(2, 1, 40);
    const auto kernel = call_kernel(options);
    REQUIRE(kernel);
    REQUIRE(plan_and_run(*kernel, call));
    return output_hash(call);
}

kvjit::Result<void> kernel_plan_and_run(const kvjit::Engine& engine, const kvjit_spec& spec, const ApiCall& call) {
    const auto kernel = engine.kernel(spec);
    if (!kernel) return kernel.error();
    kvjit::PlanOptions options;
    options.num_threads = 2;
    auto plan = kernel->plan(call.batch, options);
    if (!plan) return plan.error();
    return plan->run(call.tensors);
}

/// One try whose n-th allocation fails, then one with memory, by the same engine.
int run_short_of_memory(const kvjit::EngineOptions& options, std::uint64_t expected, std::int64_t n, Failing failing) {
    const auto spec = kvjit::KernelSpec::parse(kCallSpec);
    const auto engine = kvjit::Engine::create(options);
    const ApiCall call = make_call(2, 1, 40);
    const std::int64_t before = allocations();
    fail_allocation(n, failing);
    const auto done = kernel_plan_and_run(*engine, *spec, call);
    stop_failing();
    const bool failed = allocations() >= before + n;
    if (!done && done.error().status() != KVJIT_OUT_OF_MEMORY) return kWrongStatus;
    if (!kernel_plan_and_run(*engine, *spec, call)) return kNotServedLater;
    if (output_hash(call) != expected) return kWrongOutput;
    return failed ? kRight : kServed;
}

/// One program, on this thread alone, that no store holds: what is asked for before anything is loaded.
int ask_short_of_memory(const kvjit::Kernel& kernel, std::int64_t n) {
    const std::int64_t before = allocations();
    fail_allocation(n, Failing::kOnce);
    const auto asked = kernel.prepare(KVJIT_PROGRAM_DECODE);
    stop_failing();
    if (asked || !is_right(asked.error().status())) return kWrongStatus;
    return allocations() >= before + n ? kRight : kServed;
}

}  // namespace

TEST_CASE("the n-th allocation fails while a store is asked") {
    kvjit::EngineOptions options;
    options.cache_dir = "";
    options.jit = 0;
    const auto kernel = call_kernel(options);
    REQUIRE(kernel);
    int seen = kRight;
    for (std::int64_t n = 1; seen == kRight; ++n) {
        CAPTURE(n);
        seen = in_child([&] { return ask_short_of_memory(*kernel, n); });
        CHECK((seen == kRight || seen == kServed));
    }
}

TEST_CASE("the n-th allocation fails, once or from then on") {
    const TemporaryFolder folder;
    kvjit::EngineOptions options;
    options.cache_dir = folder.path().c_str();
    REQUIRE(warm(options));
    options.jit = 0;
    const std::uint64_t expected = hash_with_memory(options);
    for (const Failing failing : {Failing::kOnce, Failing::kFromThenOn}) {
        int seen = kRight;
        for (std::int64_t n = 1; seen == kRight; n += kStride) {
            CAPTURE(n);
            CAPTURE(static_cast<int>(failing));
            seen = in_child([&] { return run_short_of_memory(options, expected, n, failing); });
            CAPTURE(seen);
            CHECK((seen == kRight || seen == kServed));
        }
    }
}
