// Entries serve where their compiler lies elsewhere, is a copy of another time, or is missing.
#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "call.h"
#include "fixture.h"
#include "support/build_id.h"

using namespace kvjit::test;

namespace {

bool holds(const std::string& text, const std::string& part) {
    return text.find(part) != text.npos;
}

/// The compiler in a folder of its own, of another time.
class CopiedCompiler {
public:
    CopiedCompiler() {
        const auto time = std::filesystem::last_write_time(KVJIT_TEST_COMPILER);
        REQUIRE(std::filesystem::copy_file(KVJIT_TEST_COMPILER, path()));
        std::filesystem::last_write_time(path(), time - std::chrono::hours(24));
    }
    std::string path() const { return folder_.path("libkvjit_compiler.so"); }
    std::vector<std::string> environment() const { return {"KVJIT_COMPILER=" + path()}; }

private:
    TemporaryFolder folder_;
};

/// Variables for a process without a compiler.
std::vector<std::string> without_compiler(const std::string& jit) {
    return {"KVJIT_COMPILER=/nowhere/libkvjit_compiler.so", "KVJIT_JIT=" + jit};
}

}  // namespace

TEST_CASE("a copy of the compiler elsewhere, of another time, keeps its hits; another build compiles") {
    const TemporaryFolder cache;
    const Report cold = run_child(cache.path());
    REQUIRE(cold.number("compiles") == kCallPrograms);
    const CopiedCompiler copied;
    const Report moved = run_child(cache.path(), copied.environment());
    CHECK(moved["status"] == "KVJIT_OK");
    CHECK(moved.number("compiles") == 0);
    CHECK(moved.number("disk_hits") == kCallPrograms);
    CHECK(moved["output"] == cold["output"]);

    change_build_id(copied.path());
    const Report rebuilt = run_child(cache.path(), copied.environment());
    CHECK(rebuilt["status"] == "KVJIT_OK");
    CHECK(rebuilt.number("compiles") == kCallPrograms);
    CHECK(rebuilt["output"] == cold["output"]);
    CHECK(files_in(cache.path(), ".kvjit").size() == 2 * kCallPrograms);
}

TEST_CASE("without a compiler, what any compiler made of the same source is a hit") {
    const TemporaryFolder cache;
    const Report cold = run_child(cache.path());
    for (const char* jit : {"on", "off"}) {
        CAPTURE(jit);
        const Report warm = run_child(cache.path(), without_compiler(jit));
        CHECK(warm["status"] == "KVJIT_OK");
        CHECK(warm.number("disk_hits") == kCallPrograms);
        CHECK(warm["output"] == cold["output"]);
    }
}

TEST_CASE("without a compiler, what was made of another source is none") {
    const TemporaryFolder cache;
    run_child(cache.path());
    const TemplateFolder templates;
    for (const char* name : {"cpu/store.cc", "cpu/attend_decode.cc"}) {
        if (std::filesystem::exists(templates.path(name)))
            write_file(templates.path(name), read_file(templates.path(name)) + "// edited\n");
    }
    auto environment = without_compiler("off");
    environment.push_back("KVJIT_TEMPLATE_DIR=" + templates.path());
    const Report missed = run_child(cache.path(), environment);
    CHECK(missed["status"] == "KVJIT_NOT_FOUND");
    environment[1] = "KVJIT_JIT=on";
    const Report uncompiled = run_child(cache.path(), environment);
    CHECK(uncompiled["status"] == "KVJIT_COMPILER_MISSING");
    CHECK(holds(uncompiled["message"], "/nowhere/libkvjit_compiler.so"));
}
