// Callables as the C ABI's callbacks: executors, logs, progress.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "step.h"

namespace {

using kvjit::test::Step;

kvjit::EngineOptions without_disk() {
    kvjit::EngineOptions options;
    options.cache_dir = "";
    return options;
}

std::atomic<int> told{0};
void count_told(kvjit_log_level, const char*) {
    ++told;
}

}  // namespace

TEST_CASE("an executor runs every task, on its threads, and its copies share the callable") {
    std::atomic<int> stages{0};
    auto executor = std::make_unique<kvjit::Executor>(2, [&, threads = 2](std::int64_t count, kvjit::Task task) {
        ++stages;
        std::vector<std::thread> pool;
        for (int n = 0; n < threads; ++n)
            pool.emplace_back([=] {
                for (std::int64_t i = n; i < count; i += threads) task(i);
            });
        for (std::thread& thread : pool) thread.join();
    });
    const kvjit::Executor copy = *executor;
    executor.reset();
    Step serial, threaded;
    kvjit::PlanOptions options;
    options.executor = &copy;
    auto plan = Step::kernel().plan(threaded.batch, options);
    REQUIRE(plan);
    REQUIRE(plan->run(threaded.tensors));
    REQUIRE(Step::kernel().plan(serial.batch)->run(serial.tensors));
    CHECK(stages > 0);
    for (std::size_t i = 0; i < serial.output.size(); ++i) CHECK(serial.output[i].bits() == threaded.output[i].bits());
}

TEST_CASE("an executor that throws ends the process") {
    const pid_t child = fork();
    if (child == 0) {
        const kvjit::Executor executor(1, [](std::int64_t, kvjit::Task) { throw 1; });
        std::signal(SIGABRT, SIG_DFL);
        executor.run(executor.context, [](void*, std::int64_t) {}, nullptr, 1);
        _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT));
}

TEST_CASE("an executor without threads is refused") {
    Step step;
    const kvjit::Executor executor(0, [](std::int64_t, kvjit::Task) {});
    kvjit::PlanOptions options;
    options.executor = &executor;
    CHECK(Step::kernel().plan(step.batch, options).error().argument() == std::string("executor.concurrency"));
}

TEST_CASE("a log is any callable, a function too") {
    auto counted = without_disk().set_log(count_told);
    REQUIRE(kvjit::Engine::create(counted)->kernel(*kvjit::KernelSpec::parse(Step::kSpec))->prepare());
    CHECK(told > 0);

    std::vector<std::string> warnings;
    const auto log = [&](kvjit_log_level level, const char* message) {
        if (level == KVJIT_LOG_WARNING) warnings.emplace_back(message);
    };
    kvjit::EngineOptions options;
    options.cache_dir = "/proc/no/such/folder";
    options.set_log(log);
    const auto engine = kvjit::Engine::create(options).value();
    REQUIRE(engine.kernel(*kvjit::KernelSpec::parse(Step::kSpec))->prepare(KVJIT_PROGRAM_MERGE));
    REQUIRE(!warnings.empty());
    CHECK(warnings[0].find("/proc/no/such/folder") != std::string::npos);
}

TEST_CASE("late compiles and progress are told to callables, temporary ones where they hold nothing") {
    static std::vector<std::string> late;
    auto options =
        without_disk().set_on_late_compile([](const char*, const char* program) { late.emplace_back(program); });
    auto engine = kvjit::Engine::create(options).value();
    engine.seal();
    std::int64_t steps = 0;
    const auto progress = [&](std::int64_t done, std::int64_t total, const char* spec, const kvjit_error* failure) {
        CHECK(done == ++steps);
        CHECK(total == 1);
        CHECK(spec == kvjit::KernelSpec::parse(Step::kSpec)->text().value());
        CHECK(failure == nullptr);
    };
    kvjit::PrepareOptions prepare;
    prepare.programs = KVJIT_PROGRAM_STORE;
    REQUIRE(engine.prepare({*kvjit::KernelSpec::parse(Step::kSpec)}, prepare.set_progress(progress)));
    CHECK(steps == 1);
    CHECK(late == std::vector<std::string>{"store"});
}
