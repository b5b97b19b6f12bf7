// One compile a program, however many threads and processes ask at once.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "call.h"
#include "fixture.h"

using namespace kvjit::test;

namespace {

/// Has `threads` threads ask the engine for all programs at the same moment. How many got them.
int prepare_at_once(const kvjit::Engine& engine, int threads) {
    const auto spec = *kvjit::KernelSpec::parse(kCallSpec);
    std::atomic<int> waiting{threads}, ready{0};
    std::vector<std::jthread> workers;
    for (int i = 0; i < threads; ++i) {
        workers.emplace_back([&] {
            --waiting;
            while (waiting > 0) std::this_thread::yield();
            const auto kernel = engine.kernel(spec);
            if (kernel && kernel->prepare()) ++ready;
        });
    }
    workers.clear();
    return ready;
}

}  // namespace

TEST_CASE("16 threads at once compile each program once") {
    const TemporaryFolder cache;
    for (const std::string& folder : {std::string(), cache.path()}) {
        CAPTURE(folder);
        kvjit::EngineOptions options;
        options.cache_dir = folder.c_str();
        const auto engine = kvjit::Engine::create(options);
        REQUIRE(engine);
        CHECK(prepare_at_once(*engine, 16) == 16);
        CHECK(engine->stats().compiles == kCallPrograms);
        CHECK(engine->stats().disk_hits == 0);
    }
}

TEST_CASE("16 threads at once read each program once from disk") {
    const TemporaryFolder cache;
    run_child(cache.path());
    kvjit::EngineOptions options;
    options.cache_dir = cache.path().c_str();
    const auto engine = kvjit::Engine::create(options);
    REQUIRE(engine);
    CHECK(prepare_at_once(*engine, 16) == 16);
    CHECK(engine->stats().compiles == 0);
    CHECK(engine->stats().disk_hits == kCallPrograms);
}

TEST_CASE("processes that begin at once on a cold cache compile each program once together") {
    using namespace std::chrono;
    constexpr auto kLockWait = seconds(10);  // then a process compiles privately (docs/cache_format.md)
    const TemporaryFolder cache;
    const auto start = steady_clock::now();
    Child first(cache.path()), second(cache.path()), third(cache.path());
    std::int64_t compiles = 0, disk_hits = 0;
    for (Child* child : {&first, &second, &third}) {
        const Report report = child->finish();
        CHECK(report["status"] == "KVJIT_OK");
        compiles += report.number("compiles");
        disk_hits += report.number("disk_hits");
    }
    CHECK(compiles + disk_hits == 3 * kCallPrograms);
    // On a machine so slow that nobody may have waited long enough, that much is all there is to know.
    if (steady_clock::now() - start < kLockWait) CHECK(compiles == kCallPrograms);
}
