// Plans over memory and lengths that only the device knows.
#include <doctest/doctest.h>

#include <algorithm>
#include <future>
#include <string>
#include <vector>

#include "gpu/call.h"

namespace kvjit::test {
namespace {

constexpr std::size_t kGuardBytes = 256;
constexpr std::byte kGuard{0xa5};

/// Of the machine, with a pattern after it.
class GuardedWorkspace {
public:
    explicit GuardedWorkspace(std::size_t bytes) : bytes_(bytes), memory_(machine().allocate(bytes + kGuardBytes)) {
        const std::vector<std::byte> pattern(bytes + kGuardBytes, kGuard);
        machine().upload(memory_, pattern.data(), pattern.size());
    }
    ~GuardedWorkspace() { machine().release(memory_); }
    GuardedWorkspace(const GuardedWorkspace&) = delete;
    GuardedWorkspace& operator=(const GuardedWorkspace&) = delete;

    PlanOptions lend(PlanOptions options, std::size_t bytes) const {
        options.workspace = memory_;
        options.workspace_bytes = bytes;
        return options;
    }
    /// Whether anything wrote where it may, and nothing past it.
    bool is_used_and_whole() const {
        std::vector<std::byte> now(bytes_ + kGuardBytes);
        machine().download(now.data(), memory_, now.size());
        const auto end = now.begin() + static_cast<std::ptrdiff_t>(bytes_);
        const auto is_guard = [](std::byte byte) { return byte == kGuard; };
        return !std::all_of(now.begin(), end, is_guard) && std::all_of(end, now.end(), is_guard);
    }

private:
    std::size_t bytes_;
    void* memory_;
};

TEST_SUITE_BEGIN("any machine");

TEST_CASE("one plan serves all lengths and tables within its bounds") {
    for (const char* spec : {kInt8, kInt4, kF16Blocks, kF32}) {
        for (const std::int64_t new_tokens : {1, 20}) {
            CAPTURE(spec);
            CAPTURE(new_tokens);
            Step step(machine(), spec, {.new_tokens = new_tokens});
            const MachineStream stream(machine());
            Plan plan = plan_for(step, unchecked_options(stream.get()));
            for (const std::uint64_t seed : {2U, 3U, 4U}) {
                step.draw(seed);
                run(plan, step);
                expect_done(plan.synchronize());
                const Written again = step.written();
                CHECK(step.judge(again) == "");
                CHECK(again == run_alone(step, unchecked_options(stream.get())));
            }
        }
    }
}

TEST_CASE("the plan's own choice of splits is right too") {
    for (const char* spec : {kInt8, kInt4, kF16Blocks, kF32}) {
        CAPTURE(spec);
        Step step(machine(), spec, {.new_tokens = 2, .keys = 1500});
        PlanOptions options = unchecked_options();
        options.split_keys = 0;
        CHECK(step.judge(run_alone(step, options)) == "");
    }
}

TEST_CASE("with fixed splits a sequence gives the same bits alone and in a batch") {
    for (const char* spec : {kInt8, kInt4, kF16Blocks, kF32}) {
        CAPTURE(spec);
        Step together(machine(), spec, {.sequences = 4, .new_tokens = 2, .keys = 900});
        const Written all = run_alone(together, unchecked_options());
        for (std::int64_t b = 0; b < together.problem().batch_size(); ++b) {
            CAPTURE(b);
            const std::unique_ptr<Step> apart = together.alone(b);
            const Written one = run_alone(*apart, unchecked_options());
            CHECK(apart->rows_of(one, 0) == together.rows_of(all, b));
        }
    }
}

/// A run of a new plan, with bounds no wider than the lengths.
Written run_in_tight_bounds(Step& step, const PlanOptions& options) {
    const Problem problem = step.problem();
    kvjit_batch batch = step.batch();
    batch.max_seqlen = batch.max_kvlen = 1;
    for (std::int64_t b = 0; b < problem.batch_size(); ++b) {
        batch.max_seqlen = std::max(batch.max_seqlen, problem.new_tokens(b));
        batch.max_kvlen = std::max(batch.max_kvlen, problem.kv_tokens(b));
    }
    step.reset();
    Plan plan = value_of(kernel_for(step).plan(batch, options));
    run(plan, step);
    expect_done(plan.synchronize());
    return step.written();
}

TEST_CASE("with fixed splits a prefill has the same bits alone and beside others") {
    for (const char* spec : {kInt8, kInt4, kF16Blocks, kF32}) {
        CAPTURE(spec);
        Step together(machine(), spec, {.sequences = 4, .new_tokens = 40, .keys = 900});
        PlanOptions options = unchecked_options();
        options.prefill_split_keys = 192;
        CHECK(plan_for(together, options).describe().find("prefill splits: 5\n") != std::string::npos);
        const Written all = run_in_tight_bounds(together, options);
        CHECK(together.judge(all) == "");
        for (std::int64_t b = 0; b < together.problem().batch_size(); ++b) {
            CAPTURE(b);
            const std::unique_ptr<Step> apart = together.alone(b);
            CHECK(apart->rows_of(run_in_tight_bounds(*apart, options), 0) == together.rows_of(all, b));
        }
    }
}

TEST_CASE("a mirror in host memory is checked by the plan, and its bounds serve") {
    Step step(machine(), kInt8, {});
    kvjit_batch batch = step.batch(), mirror = step.host_batch();
    batch.max_seqlen = batch.max_kvlen = mirror.max_seqlen = mirror.max_kvlen = 0;
    PlanOptions options = checked_options();
    options.host_batch = &mirror;
    Plan plan = value_of(kernel_for(step).plan(batch, options));
    run(plan, step);
    expect_done(plan.synchronize());
    CHECK(step.judge(step.written()) == "");

    std::vector<std::int64_t> falling = step.problem().kvstarts;
    falling[1] = -1;
    mirror.kvstarts = falling.data();
    const auto refused = kernel_for(step).plan(batch, options);
    REQUIRE(!refused);
    CHECK(refused.error().status() == KVJIT_BAD_INDEX);
    CHECK(std::string(refused.error().argument()) == "kvstarts");
}

TEST_CASE("a caller's workspace serves, and nothing is written beyond it") {
    Step step(machine(), kInt8, {.keys = 900});
    const Written expected = run_alone(step, checked_options());
    const std::size_t bytes = plan_for(step, checked_options()).workspace_bytes();
    REQUIRE(bytes > 0);
    const GuardedWorkspace workspace(bytes);
    CHECK(run_alone(step, workspace.lend(checked_options(), bytes)) == expected);
    CHECK(workspace.is_used_and_whole());
}

TEST_CASE("a workspace that is too small is refused with what is needed") {
    const Step step(machine(), kInt8, {.keys = 900});
    const std::size_t bytes = plan_for(step, checked_options()).workspace_bytes();
    const GuardedWorkspace workspace(bytes);
    const auto refused = kernel_for(step).plan(step.batch(), workspace.lend(checked_options(), bytes - 1));
    REQUIRE(!refused);
    CHECK(refused.error().status() == KVJIT_BAD_ARGUMENT);
    CHECK(refused.error().limit() == static_cast<std::int64_t>(bytes));
    CHECK(!workspace.is_used_and_whole());
}

/// Draws, runs and reads a step of its own; what came out, draw by draw.
std::vector<Written> run_draws(const char* spec, std::uint64_t first_seed) {
    machine().enter();
    const MachineStream stream(machine());
    Step step(machine(), spec, {.new_tokens = 2});
    Plan plan = plan_for(step, checked_options(stream.get()));
    std::vector<Written> all;
    for (std::uint64_t seed = first_seed; seed < first_seed + 4; ++seed) {
        step.draw(seed);
        for (int i = 0; i < 3; ++i) run(plan, step);
        expect_done(plan.synchronize());
        all.push_back(step.written());
    }
    return all;
}

TEST_CASE("two plans on two streams of two threads don't meet") {
    const std::vector<Written> expected[] = {run_draws(kInt8, 11), run_draws(kF16Blocks, 21)};
    auto first = std::async(std::launch::async, run_draws, kInt8, 11);
    auto second = std::async(std::launch::async, run_draws, kF16Blocks, 21);
    CHECK(first.get() == expected[0]);
    CHECK(second.get() == expected[1]);
}

TEST_SUITE_END();

}  // namespace
}  // namespace kvjit::test
