// A process that runs what a bundle holds: without a compiler, without a cache, and as the compiler's own code would.
#include <doctest/doctest.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "call.h"
#include "fixture.h"

using namespace kvjit::test;

namespace {

bool holds(const std::string& text, const std::string& part) {
    return text.find(part) != text.npos;
}

/// For a process with this bundle and no way to compile.
std::vector<std::string> serving(const std::string& bundles) {
    return {"KVJIT_JIT=off", "KVJIT_COMPILER=/nowhere/libkvjit_compiler.so", "KVJIT_TEST_BUNDLE=" + bundles};
}

void flip(const std::string& path, std::size_t at) {
    std::string bytes = read_file(path);
    bytes[at] ^= 1;
    write_file(path, bytes);
}

}  // namespace

TEST_CASE("with a bundle and an empty cache nothing is compiled, and no compiler is mapped") {
    const Shipped shipped;
    const TemporaryFolder compiled_here, empty;
    const Report compiled = run_child(compiled_here.path());
    REQUIRE(compiled["status"] == "KVJIT_OK");
    const Report served = run_child(empty.path(), serving(shipped.bundle()));
    CHECK_MESSAGE(served["status"] == "KVJIT_OK", served["message"]);
    CHECK(served.number("bundle_hits") == kCallPrograms);
    CHECK(served.number("disk_hits") == 0);
    CHECK(served.number("compiles") == 0);
    CHECK(served["output"] == compiled["output"]);
    CHECK(served.number("libkvjit.so") > 0);
    for (const char* library : {"libkvjit_compiler", "libnvrtc", "rwx"}) {
        CAPTURE(library);
        CHECK(served.number(library) == 0);
    }
    CHECK(files_in(empty.path()).empty());
}

TEST_CASE("a lesser target's kernels serve a machine that has more, and are used though it could compile") {
    const Shipped shipped("x86-64,x86-64-v2");
    const TemporaryFolder empty;
    for (const char* jit : {"on", "off"}) {
        const Report served =
            run_child(empty.path(), {std::string("KVJIT_JIT=") + jit, "KVJIT_TEST_BUNDLE=" + shipped.bundle()});
        CHECK_MESSAGE(served["status"] == "KVJIT_OK", served["message"]);
        CHECK(served.number("bundle_hits") == kCallPrograms);
        CHECK(served.number("compiles") == 0);
    }
}

TEST_CASE("a miss names the spec's line, and what the bundle has instead") {
    const Shipped shipped("x86-64-v4-amx+gfni");  // no machine's own level
    const TemporaryFolder empty;
    const Report missed = run_child(empty.path(), serving(shipped.bundle()));
    CHECK(missed["status"] == "KVJIT_NOT_FOUND");
    const auto spec = kvjit::KernelSpec::parse(kCallSpec);
    CHECK_MESSAGE(holds(missed["message"], "specs.txt: " + *spec->text()), missed["message"]);
    CHECK_MESSAGE(holds(missed["message"], "kernels.kvjb has it for x86_64-unknown-linux-gnu:x86-64-v4-amx+gfni"),
                  missed["message"]);
}

TEST_CASE("a damaged bundle is refused with the reason, and the next one serves") {
    const Shipped shipped;
    const TemporaryFolder empty;
    const std::string bad = shipped.path("bad.kvjb");
    std::filesystem::copy_file(shipped.bundle(), bad);
    flip(bad, 200);  // in the index
    const Report served = run_child(empty.path(), serving(bad + ':' + shipped.bundle()));
    CHECK(served["refused"] == "bundle " + bad + " has a damaged index: its digest differs");
    CHECK(served["status"] == "KVJIT_OK");
    const Report alone = run_child(empty.path(), serving(bad));
    CHECK(alone["status"] == "KVJIT_NOT_FOUND");
    write_file(bad, read_file(shipped.bundle()).substr(0, 1000));
    CHECK(holds(run_child(empty.path(), serving(bad))["refused"], "is cut short: it has 1000 of "));
}

TEST_CASE("damaged entries are never run: the next store serves, or the error says why") {
    const Shipped shipped;
    const TemporaryFolder empty;
    const std::string bad = shipped.path("bad.kvjb");
    std::string bytes = read_file(shipped.bundle());
    for (std::size_t at = bytes.size() - 1; at > 4096; at -= 512) bytes[at] ^= 1;  // each entry has more than that
    write_file(bad, bytes);
    const Report alone = run_child(empty.path(), serving(bad));
    CHECK(alone["status"] == "KVJIT_BAD_FILE");
    CHECK_MESSAGE(holds(alone["message"], bad + " has a damaged entry "), alone["message"]);
    const Report served = run_child(empty.path(), serving(bad + ':' + shipped.bundle()));
    CHECK(served["status"] == "KVJIT_OK");
    CHECK(served.number("bundle_hits") == kCallPrograms);
    const Report compiled = run_child(empty.path(), {"KVJIT_TEST_BUNDLE=" + bad});
    CHECK(compiled["status"] == "KVJIT_OK");
    CHECK(compiled.number("compiles") == kCallPrograms);
}

TEST_CASE("what was made before is not compiled again, and gives the same bytes") {
    const Shipped shipped("x86-64-v3,x86-64-v4");
    const std::vector<std::string> made = files_in(shipped.path("made"), ".kvjit");
    CHECK(made.size() > 2 * kCallPrograms);
    const std::string again = shipped.path("again.kvjb");
    create_bundle(again, " --targets x86-64-v4,x86-64-v3 -j 1" + shipped.cache(),
                  "env KVJIT_COMPILER='" KVJIT_TEST_COMPILER "'");
    CHECK(read_file(again) == read_file(shipped.bundle()));
    CHECK(files_in(shipped.path("made"), ".kvjit").size() == made.size());
}

TEST_CASE("two creations from nothing give the same bytes: other home, time zone, locale, folder, threads") {
    const Shipped shipped("x86-64-v3");
    const TemporaryFolder other;
    create_bundle(
        other.path("b.kvjb"), " --targets x86-64-v3 -j 3 --cache-dir ''",
        "cd '" + other.path() + "' && env -i HOME='" + other.path() + "' TZ=Asia/Tokyo LC_ALL=C.UTF-8 LANG=tr_TR");
    CHECK(read_file(other.path("b.kvjb")) == read_file(shipped.bundle()));
}

TEST_CASE("a bundle in memory serves as one in a file does") {
    const Shipped shipped;
    const std::string bytes = read_file(shipped.bundle());
    kvjit::EngineOptions options;
    options.cache_dir = "";
    options.jit = 0;
    auto engine = kvjit::Engine::create(options);
    REQUIRE(engine);
    REQUIRE(engine->add_bundle(bytes.data(), bytes.size()));
    const auto kernel = engine->kernel(*kvjit::KernelSpec::parse(kCallSpec));
    REQUIRE(kernel);
    const ApiCall call = make_call(2, 1, 40);
    CHECK(plan_and_run(*kernel, call));
    CHECK(engine->stats().bundle_hits == 2);  // what this batch needs: store and decode
    CHECK(engine->add_bundle(bytes.data(), bytes.size() - 1).error().status() == KVJIT_BAD_FILE);
}
