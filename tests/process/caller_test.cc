// Who may run a plan: not a forked process with the parent's plan, and no thread without a stack.
#include <doctest/doctest.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "call.h"
#include "support/child_process.h"

using namespace kvjit::test;

namespace {

enum Seen { kRight = 0, kRan, kWrongStatus, kNoRule, kWritten, kNotRun, kWrongOutput };

const kvjit::Kernel& kernel() {
    static const kvjit::Kernel kernel = [] {
        kvjit::EngineOptions options;
        options.cache_dir = "";
        return *call_kernel(options);
    }();
    return kernel;
}

kvjit::PlanOptions threads(std::uint32_t count) {
    kvjit::PlanOptions options;
    options.num_threads = count;
    return options;
}

void run_serially(void*, void (*task)(void*, std::int64_t), void* argument, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) task(argument, i);
}

/// A call with 300 keys in each of 4 sequences, and what it should give.
struct Expected : ApiCall {
    Expected() : ApiCall(make_call(4, 1, 300)) {
        REQUIRE(plan_and_run(kernel(), *this));
        hash = output_hash(*this);
    }
    std::uint64_t hash = 0;
};

/// Whether the run is refused by the rule of kvjit.h that it names, and leaves the output alone.
int refusal(kvjit::Plan& plan, const std::string& rule) {
    const ApiCall untouched = make_call(4, 1, 300);
    const auto before = untouched.snapshot();
    const auto done = plan.run(untouched.tensors);
    if (done) return kRan;
    if (done.error().status() != KVJIT_BAD_ARGUMENT || done.error().argument() != std::string("plan"))
        return kWrongStatus;
    const std::string message = done.error().message();
    if (message.find("kvjit.h") == message.npos || message.find(rule) == message.npos) return kNoRule;
    return untouched.snapshot() == before ? kRight : kWritten;
}

int run_and_compare(kvjit::Plan& plan, Expected& call) {
    if (!plan.run(call.tensors)) return kNotRun;
    return output_hash(call) == call.hash ? kRight : kWrongOutput;
}

/// What `body` returns on a thread with so small a stack.
template <class Body>
int on_stack_of(std::size_t bytes, Body body) {
    struct Task {
        Body& body;
        int seen;
    } task{body, -1};
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    REQUIRE(pthread_attr_setstacksize(&attributes, bytes) == 0);
    const auto run = [](void* given) -> void* {
        static_cast<Task*>(given)->seen = static_cast<Task*>(given)->body();
        return nullptr;
    };
    REQUIRE(pthread_create(&thread, &attributes, run, &task) == 0);
    pthread_attr_destroy(&attributes);
    pthread_join(thread, nullptr);
    return task.seen;
}

}  // namespace

TEST_CASE("a plan of the parent's is refused in a forked process, which makes its own" * doctest::skip(kSanitized)) {
    Expected call;
    auto plan = kernel().plan(call.batch, threads(2));
    REQUIRE(plan);
    REQUIRE(run_and_compare(*plan, call) == kRight);
    const auto in_fork = [&] {
        alarm(60);  // it used to wait for ever
        if (const int seen = refusal(*plan, "fork"); seen != kRight) return seen;
        auto own = kernel().plan(call.batch, threads(2));
        return own ? run_and_compare(*own, call) : kNotRun;
    };
    CHECK(in_child(in_fork) == kRight);
    CHECK(in_child([&] { return in_child(in_fork); }) == kRight);
    CHECK(run_and_compare(*plan, call) == kRight);
}

TEST_CASE("in a forked process plans run that need no thread of the parent's" * doctest::skip(kSanitized)) {
    Expected call;
    auto alone = kernel().plan(call.batch, threads(1));
    kvjit::PlanOptions options;
    kvjit_executor executor = {sizeof executor, 4, nullptr, run_serially};
    options.executor = &executor;
    auto given = kernel().plan(call.batch, options);
    REQUIRE(alone);
    REQUIRE(given);
    CHECK(in_child([&] { return run_and_compare(*alone, call); }) == kRight);
    CHECK(in_child([&] { return run_and_compare(*given, call); }) == kRight);
}

TEST_CASE("a forked process uses the parent's kernel, whatever the parent's other threads were at" *
          doctest::skip(kSanitized)) {
    Expected call;
    const auto in_fork = [&] {
        alarm(60);
        auto own = kernel().plan(call.batch, threads(2));
        return own ? run_and_compare(*own, call) : kNotRun;
    };
    REQUIRE(kernel().prepare());
    std::atomic<bool> ended = false;
    std::vector<std::thread> others;
    for (int i = 0; i < 2; ++i) {
        others.emplace_back([&] {
            while (!ended) kernel().plan(call.batch, threads(2)).value();
        });
    }
    int wrong = 0;
    for (int i = 0; i < 100; ++i) wrong += in_child(in_fork) != kRight;
    ended = true;
    for (std::thread& other : others) other.join();
    CHECK(wrong == 0);
}

TEST_CASE("a fork while another thread prepares specs finds the engine whole" * doctest::skip(kSanitized)) {
    kvjit::EngineOptions options;
    options.cache_dir = "";
    const auto engine = kvjit::Engine::create(options).value();
    const kvjit::KernelSpec spec = kvjit::KernelSpec::parse("op=Merge,head_dim=64").value();
    REQUIRE(engine.prepare({spec}));
    std::atomic<bool> ended = false;
    std::thread other([&] {
        while (!ended) engine.prepare({spec}).value();
    });
    int wrong = 0;
    for (int i = 0; i < 500; ++i) {
        wrong += in_child([&] {
                     alarm(20);
                     return engine.kernel(spec) ? kRight : kNotRun;
                 }) != kRight;
    }
    ended = true;
    other.join();
    CHECK(wrong == 0);
}

TEST_CASE("a fork while another thread compiles waits for it" * doctest::skip(kSanitized)) {
    kvjit::EngineOptions options;
    options.cache_dir = "";
    const auto engine = kvjit::Engine::create(options).value();
    int wrong = 0;
    for (int i = 0; i < 8; ++i) {
        const std::string spec = "op=MultiHeadAttention,t1=f32,head_dim=" + std::to_string(32 + 8 * i);
        const auto kernel = engine.kernel(kvjit::KernelSpec::parse(spec).value()).value();
        std::thread other([&] { kernel.prepare(KVJIT_PROGRAM_DECODE).value(); });
        std::this_thread::sleep_for(std::chrono::milliseconds(10 * i));
        wrong += in_child([&] {
                     alarm(60);
                     return kernel.prepare(KVJIT_PROGRAM_DECODE) ? kRight : kNotRun;
                 }) != kRight;
        other.join();
    }
    CHECK(wrong == 0);
}

// ThreadSanitizer's own data takes part of each stack.
TEST_CASE("a thread whose stack is too small for a kernel is refused, and one of 1 MiB is not" *
          doctest::skip(kThreadSanitized)) {
    Expected call;
    for (const std::uint32_t count : {1u, 2u}) {
        CAPTURE(count);
        auto plan = kernel().plan(call.batch, threads(count));
        REQUIRE(plan);
        CHECK(on_stack_of(128 << 10, [&] { return refusal(*plan, "stack"); }) == kRight);
        CHECK(on_stack_of(1 << 20, [&] { return run_and_compare(*plan, call); }) == kRight);
    }
}
