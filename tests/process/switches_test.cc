// Switches that keep an engine from compiling: jit = 0, KVJIT_JIT=off, no compiler.
#include <doctest/doctest.h>
#include <sys/resource.h>

#include <filesystem>
#include <string>

#include "call.h"
#include "fixture.h"

using namespace kvjit::test;

namespace {

bool holds(const std::string& text, const std::string& part) {
    return text.find(part) != text.npos;
}

}  // namespace

TEST_CASE("without compiling a miss names the program, and a hit works") {
    const TemporaryFolder cache;
    kvjit::EngineOptions options;
    options.cache_dir = cache.path().c_str();
    options.jit = 0;
    const auto missed = call_kernel(options)->prepare(KVJIT_PROGRAM_DECODE);
    REQUIRE(!missed);
    CHECK(missed.error().status() == KVJIT_NOT_FOUND);
    CHECK(holds(missed.error().message(), "attend_decode;variant=simd;"));

    run_child(cache.path());
    const auto kernel = call_kernel(options);
    REQUIRE(kernel);
    const ApiCall call = make_call(2, 1, 40);
    CHECK(plan_and_run(*kernel, call));
}

TEST_CASE("a plan that misses a program fails as prepare does, and writes nothing") {
    kvjit::EngineOptions options;
    options.cache_dir = "";
    options.jit = 0;
    const ApiCall call = make_call(1, 1, 40);
    const auto before = call.snapshot();
    const auto done = plan_and_run(*call_kernel(options), call);
    REQUIRE(!done);
    CHECK(done.error().status() == KVJIT_NOT_FOUND);
    CHECK(call.snapshot() == before);
}

TEST_CASE("KVJIT_JIT=off is jit = 0") {
    const TemporaryFolder cache;
    const Report missed = run_child(cache.path(), {"KVJIT_JIT=off"});
    CHECK(missed["status"] == "KVJIT_NOT_FOUND");
    CHECK(holds(missed["message"], "KVJIT_JIT=off"));
    const Report cold = run_child(cache.path(), {"KVJIT_JIT=on"});
    CHECK(cold.number("compiles") == kCallPrograms);
    const Report hit = run_child(cache.path(), {"KVJIT_JIT=off"});
    CHECK(hit["status"] == "KVJIT_OK");
    CHECK(hit["output"] == cold["output"]);
}

TEST_CASE("KVJIT_JIT takes on and off only") {
    const TemporaryFolder cache;
    const Report report = run_child(cache.path(), {"KVJIT_JIT=maybe"});
    CHECK(report["status"] == "KVJIT_BAD_ARGUMENT");
    CHECK(holds(report["message"], "maybe"));
}

TEST_CASE("a missing compiler is an error that says where it was looked for and what to install") {
    const TemporaryFolder cache;
    const std::string nowhere = cache.path("libkvjit_compiler.so");
    const Report report = run_child(cache.path(), {"KVJIT_COMPILER=" + nowhere});
    CHECK(report["status"] == "KVJIT_COMPILER_MISSING");
    CHECK(holds(report["message"], nowhere));
    CHECK(holds(report["message"], "install"));

    kvjit::EngineOptions options;
    options.cache_dir = "";
    options.compiler = nowhere.c_str();
    const auto done = call_kernel(options)->prepare(KVJIT_PROGRAM_STORE);
    REQUIRE(!done);
    CHECK(done.error().status() == KVJIT_COMPILER_MISSING);
}

TEST_CASE("switched off, an entry that can't be read for the moment is not said to be missing") {
    const TemporaryFolder cache;
    run_child(cache.path());
    kvjit::EngineOptions options;
    options.cache_dir = cache.path().c_str();
    options.jit = 0;
    const auto kernel = call_kernel(options);
    REQUIRE(kernel->emit(KVJIT_STAGE_IDENTITY, KVJIT_PROGRAM_DECODE));  // the compiler is known from here on
    rlimit before{};
    REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
    const rlimit none{0, before.rlim_max};
    REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
    const auto failed = kernel->prepare(KVJIT_PROGRAM_DECODE);
    REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
    REQUIRE(!failed);
    CHECK(failed.error().status() == KVJIT_BAD_FILE);
    CHECK(holds(failed.error().message(), "Too many open files"));
    CHECK(holds(failed.error().message(), "attend_decode;variant=simd;"));
    CHECK(!holds(failed.error().message(), "no store holds"));
    CHECK(kernel->prepare(KVJIT_PROGRAM_DECODE));
}

TEST_CASE("a compiler that can't be looked at is as a missing one: a hit works, and only who compiles is told") {
    const TemporaryFolder cache;
    const std::string loop = cache.path("libkvjit_compiler.so");
    std::filesystem::create_symlink(loop, loop);
    const Report off = run_child(cache.path("cache"), {"KVJIT_JIT=off", "KVJIT_COMPILER=" + loop});
    CHECK(off["status"] == "KVJIT_NOT_FOUND");
    CHECK(holds(off["message"], "no store holds"));
    const Report on = run_child(cache.path("cache"), {"KVJIT_COMPILER=" + loop});
    CHECK(on["status"] == "KVJIT_COMPILER_MISSING");
    CHECK(holds(on["message"], loop + ": Too many levels of symbolic links"));
    run_child(cache.path("cache"));
    const Report warm = run_child(cache.path("cache"), {"KVJIT_JIT=off", "KVJIT_COMPILER=" + loop});
    CHECK(warm["status"] == "KVJIT_OK");
    CHECK(warm.number("disk_hits") == kCallPrograms);
}

TEST_CASE("switched off and without a compiler, a miss is a miss; source is rendered all the same") {
    const TemporaryFolder cache;
    const std::string nowhere = cache.path("libkvjit_compiler.so");
    kvjit::EngineOptions options;
    options.cache_dir = cache.path().c_str();
    options.compiler = nowhere.c_str();
    options.jit = 0;
    const auto kernel = call_kernel(options);
    const auto missed = kernel->prepare(KVJIT_PROGRAM_STORE);
    REQUIRE(!missed);
    CHECK(missed.error().status() == KVJIT_NOT_FOUND);
    CHECK(holds(*kernel->emit(KVJIT_STAGE_SOURCE, KVJIT_PROGRAM_STORE), "kvjit_store"));
    CHECK(kernel->emit(KVJIT_STAGE_SOURCE, KVJIT_PROGRAM_LOAD).error().argument() == std::string("programs"));
}

TEST_CASE("what a log callback throws comes back as an error, from whichever thread compiled") {
    kvjit::EngineOptions options;
    options.cache_dir = "";
    options.log = [](void*, std::int32_t, const char*) { throw 1; };
    const auto done = call_kernel(options)->prepare(KVJIT_ALL_PROGRAMS);
    REQUIRE(!done);
    CHECK(done.error().status() == KVJIT_INTERNAL);
}

TEST_CASE("a file that is no compiler is an error too") {
    const TemporaryFolder folder;
    const std::string path = folder.path("compiler.so");
    write_file(path, "not a library");
    kvjit::EngineOptions options;
    options.cache_dir = "";
    options.compiler = path.c_str();
    const auto done = call_kernel(options)->prepare(KVJIT_PROGRAM_STORE);
    REQUIRE(!done);
    CHECK(done.error().status() == KVJIT_COMPILER_MISSING);
    CHECK(holds(done.error().message(), path));
}
