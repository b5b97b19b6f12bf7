// What only a GPU has: streams that wait, captured graphs, memory of its own, contexts, a second device.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "gpu/call.h"
#include "gpu/unchanged_memory.h"
#include "limits/cuda/gpu.h"

namespace kvjit::test {
namespace {

/// Keeps a stream from going on until it is opened, or, lest a failure hangs, for 20 seconds.
class Gate {
public:
    explicit Gate(const gpu::Stream& stream) {
        gpu::check(gpu::driver().stream_call_host(stream.get(), wait, this), "cuLaunchHostFunc");
    }
    ~Gate() { is_open_ = true; }
    Gate(const Gate&) = delete;
    Gate& operator=(const Gate&) = delete;
    void open() { is_open_ = true; }
    bool gave_up() const { return gave_up_; }

private:
    static void wait(void* self) {
        auto* gate = static_cast<Gate*>(self);
        for (int i = 0; i < 200'000 && !gate->is_open_; ++i)
            std::this_thread::sleep_for(std::chrono::microseconds(100));
        gate->gave_up_ = !gate->is_open_;
    }

    std::atomic<bool> is_open_{false};
    std::atomic<bool> gave_up_{false};
};

/// What `work` throws on a thread of its own; empty: nothing.
template <class Work>
std::string failure_in_thread(const Work& work) {
    std::string failure;
    std::thread([&] {
        try {
            work();
        } catch (const std::exception& error) {
            failure = error.what();
        }
    }).join();
    return failure;
}

/// Runs the step once, with an engine, a kernel and a plan that come for it and go.
void live_on(const gpu::Stream& stream, const Step& step) {
    EngineOptions options;
    options.cache_dir = "";
    const Engine engine = value_of(Engine::create(options));
    Plan plan = value_of(kernel_for(step, engine).plan(step.batch(), checked_options(stream.get())));
    run(plan, step);
    expect_done(plan.synchronize());
}

TEST_SUITE_BEGIN("GPU");

void check_replays(const char* spec, std::int64_t new_tokens, PlanOptions options) {
    CAPTURE(spec);
    CAPTURE(new_tokens);
    CAPTURE(options.check_level);
    const gpu::Stream stream;
    options.stream = stream.get();
    Step step(machine(), spec, {.new_tokens = new_tokens, .keys = 900});
    Plan plan = plan_for(step, options);
    const gpu::Graph graph(stream, [&] { run(plan, step); });
    CHECK(graph.nodes() >= 2);                   // store and attention at least
    for (const std::uint64_t seed : {2U, 3U}) {  // a replay after the capture, a replay after a replay
        CAPTURE(seed);
        step.draw(seed);
        graph.launch(stream);
        expect_done(plan.synchronize());
        const Written replayed = step.written();
        CHECK(step.judge(replayed) == "");
        CHECK(replayed == run_alone(step, options));
    }
}

TEST_CASE("a captured step replays with other lengths and tables") {
    for (const char* spec : {kInt8, kInt4, kF16Blocks, kF32}) {
        for (const std::int64_t new_tokens : {1, 20}) {
            check_replays(spec, new_tokens, unchecked_options());
            check_replays(spec, new_tokens, checked_options());
        }
    }
}

TEST_CASE("a captured check finds a bad table in a replay") {
    const gpu::Stream stream;
    Step step(machine(), kInt8, {});
    Plan plan = plan_for(step, checked_options(stream.get()));
    const gpu::Graph graph(stream, [&] { run(plan, step); });
    step.draw(2);
    step.set_entry(0, 1, 1'000'000);
    const Written before = step.written();
    graph.launch(stream);
    const auto found = plan.synchronize();
    REQUIRE(!found);
    CHECK(found.error().status() == KVJIT_BAD_INDEX);
    CHECK(step.written() == before);
}

TEST_CASE("a kernel's first run can be captured") {
    EngineOptions options;
    options.cache_dir = "";
    const Engine engine = value_of(Engine::create(options));
    const gpu::Stream stream;
    Step step(machine(), kInt8, {.new_tokens = 20, .keys = 900});
    Plan plan = value_of(kernel_for(step, engine).plan(step.batch(), unchecked_options(stream.get())));
    const gpu::Graph graph(stream, [&] { run(plan, step); });
    graph.launch(stream);
    expect_done(plan.synchronize());
    CHECK(step.judge(step.written()) == "");
}

TEST_CASE("while a stream is captured, plans on another come, serve and go, in the capture's thread or beside it") {
    for (const bool same_thread : {true, false}) {
        CAPTURE(same_thread);
        const gpu::Stream captured, free;
        Step recorded(machine(), kInt8, {}), other(machine(), kF32, {});
        Plan plan = plan_for(recorded, unchecked_options(captured.get()));
        const Written before = recorded.written();
        const gpu::Graph graph(captured, [&] {
            run(plan, recorded);
            if (same_thread) return live_on(free, other);
            CHECK(failure_in_thread([&] { live_on(free, other); }) == "");
        });
        CHECK(other.judge(other.written()) == "");
        CHECK(recorded.written() == before);
        graph.launch(captured);
        expect_done(plan.synchronize());
        CHECK(recorded.judge(recorded.written()) == "");
    }
}

TEST_CASE("a run allocates no device memory") {
    for (const char* spec : {kInt8, kF32}) {
        for (const std::int64_t new_tokens : {1, 20}) {
            CAPTURE(spec);
            CAPTURE(new_tokens);
            Step step(machine(), spec, {.new_tokens = new_tokens, .keys = 900});
            const gpu::Stream stream;
            Plan plan = plan_for(step, checked_options(stream.get()));
            CHECK(memory_is_unchanged([&] {
                for (int i = 0; i < 10; ++i) run(plan, step);
                stream.synchronize();
            }));
        }
    }
}

TEST_CASE("plans give all their memory back") {
    Step step(machine(), kInt8, {.new_tokens = 20, .keys = 900});
    run_alone(step, checked_options());
    CHECK(memory_is_unchanged([&] {
        for (int i = 0; i < 10; ++i) run_alone(step, checked_options());
    }));
}

TEST_CASE("a run returns while its stream waits") {
    for (const std::int64_t new_tokens : {1, 20}) {
        const gpu::Stream stream;
        Step step(machine(), kInt8, {.new_tokens = new_tokens, .keys = 900});
        Plan plan = plan_for(step, checked_options(stream.get()));
        const Written before = step.written();
        Gate gate(stream);
        for (int i = 0; i < 5; ++i) run(plan, step);
        CHECK(stream.is_busy());
        CHECK(!gate.gave_up());
        CHECK(step.written() == before);
        gate.open();
        expect_done(plan.synchronize());
        CHECK(!gate.gave_up());
        CHECK(step.judge(step.written()) == "");
    }
}

TEST_CASE("a stream that waits holds up no other stream's plan") {
    const gpu::Stream waiting, free;
    Step held(machine(), kInt8, {}), other(machine(), kInt8, {});
    Plan held_plan = plan_for(held, unchecked_options(waiting.get()));
    Plan other_plan = plan_for(other, unchecked_options(free.get()));
    Gate gate(waiting);
    run(held_plan, held);
    run(other_plan, other);
    expect_done(other_plan.synchronize());
    CHECK(other.judge(other.written()) == "");
    CHECK(waiting.is_busy());
    CHECK(!gate.gave_up());
    gate.open();
    expect_done(held_plan.synchronize());
    CHECK(held.judge(held.written()) == "");
}

TEST_CASE("a thread without a context can plan and run, and has none afterwards") {
    Step step(machine(), kInt8, {});
    void* context = nullptr;
    const auto work = [&] {
        Plan plan = plan_for(step, unchecked_options());
        run(plan, step);
        expect_done(plan.synchronize());
        gpu::check(gpu::driver().context_get(&context), "cuCtxGetCurrent");
    };
    CHECK(failure_in_thread(work) == "");
    CHECK(context == nullptr);
    CHECK(step.judge(step.written()) == "");
}

TEST_CASE("a workspace beyond the device's memory is refused, and leaks nothing") {
    const Step step(machine(), kInt8, {});
    const Kernel kernel = kernel_for(step);
    kvjit_batch batch = step.batch();
    PlanOptions options = unchecked_options();
    options.split_keys = 64;
    batch.max_kvlen = 64 * 65535;                          // as many splits as a grid has room for
    batch.batch_size = batch.cachestarts.shape[0] = 1024;  // a terabyte of partial results; nothing runs
    const auto refuse = [&] {
        const auto refused = kernel.plan(batch, options);
        REQUIRE(!refused);
        CHECK(refused.error().status() == KVJIT_OUT_OF_MEMORY);
    };
    refuse();
    CHECK(memory_is_unchanged([&] {
        for (int i = 0; i < 100; ++i) refuse();
    }));
}

TEST_CASE("plans on two devices serve side by side") {
    if (gpu::Gpu::count() < 2) {
        MESSAGE("SKIP: this machine has one GPU");
        return;
    }
    const std::unique_ptr<Machine> second = make_gpu_machine(gpu_of_machine().ordinal() == 0 ? 1 : 0);
    Step there(*second, kInt8, {});
    Plan plan = plan_for(there, checked_options());
    machine().enter();
    Step here(machine(), kInt8, {});
    CHECK(here.judge(run_alone(here, checked_options())) == "");
    run(plan, there);
    expect_done(plan.synchronize());
    void* context = nullptr;
    gpu::check(gpu::driver().context_get(&context), "cuCtxGetCurrent");
    CHECK(context == gpu_of_machine().context());
    second->enter();
    CHECK(there.judge(there.written()) == "");
    machine().enter();
}

TEST_SUITE_END();

}  // namespace
}  // namespace kvjit::test
