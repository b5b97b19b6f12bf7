// KVJIT_LOG: what a process of an engine writes to standard error.
#include <doctest/doctest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "call.h"
#include "fixture.h"

using namespace kvjit::test;

namespace {

/// Lines on standard error of a process that runs one call. `before`: NAME=VALUE, with blanks between.
std::vector<std::string> lines_of(const TemporaryFolder& folder, const std::string& before) {
    const std::string said = folder.path("said");
    const std::string command = "env -u KVJIT_JIT -u KVJIT_LOG -u KVJIT_COMPILER -u KVJIT_TEMPLATE_DIR " + before +
                                " '" KVJIT_CHILD "' '" + folder.path("cache") + "' 2> '" + said + "' > /dev/null";
    REQUIRE(WEXITSTATUS(std::system(command.c_str())) == 0);
    std::vector<std::string> lines;
    std::istringstream text(read_file(said));
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
}

int count(const std::vector<std::string>& lines, const std::string& beginning, const std::string& part = "") {
    int found = 0;
    for (const std::string& line : lines) {
        found += line.starts_with(beginning) && line.find(part) != std::string::npos;
    }
    return found;
}

}  // namespace

TEST_CASE("nothing is written that wasn't asked for") {
    const TemporaryFolder folder;
    CHECK(lines_of(folder, "").empty());
    CHECK(lines_of(folder, "KVJIT_LOG=").empty());
}

TEST_CASE("each level has its lines") {
    const TemporaryFolder folder;
    const auto compiled = lines_of(folder, "KVJIT_LOG=info");
    CHECK(std::ssize(compiled) == kCallPrograms);
    CHECK(count(compiled, "kvjit: info: compiled program=", "why=\"no entry in the disk cache\"") == kCallPrograms);

    CHECK(lines_of(folder, "KVJIT_LOG=info").empty());
    const auto taken = lines_of(folder, "KVJIT_LOG=debug");
    CHECK(count(taken, "kvjit: debug: took ", " from=disk place=" + folder.path("cache")) == kCallPrograms);
    CHECK(count(taken, "kvjit: debug: planned ", " sequences=2 ") == 1);
    CHECK(std::ssize(taken) == kCallPrograms + 1);

    const auto traced = lines_of(folder, "KVJIT_LOG=trace");
    CHECK(count(traced, "kvjit: trace: ran ", " layer=0 ") == 1);
    CHECK(std::ssize(traced) == kCallPrograms + 2);
}

TEST_CASE("each line has the spec as the commands take it") {
    const TemporaryFolder folder;
    const std::string spec = std::string("spec=\"") + kCallSpec + "\"";
    const auto lines = lines_of(folder, "KVJIT_LOG=trace");
    CHECK(std::ssize(lines) == kCallPrograms + 2);
    CHECK(count(lines, "kvjit: ", spec) == std::ssize(lines));
}

TEST_CASE("what isn't compiled is refused with the reason") {
    const TemporaryFolder folder;
    const auto lines = lines_of(folder, "KVJIT_LOG=info KVJIT_JIT=off");
    CHECK(count(lines, "kvjit: info: refused ", "why=\"compiling is off") == kCallPrograms);
}

TEST_CASE("a variable's mistake is said where there is no log, too, and once") {
    const TemporaryFolder folder;
    const auto record = lines_of(folder, "KVJIT_RECORD=" + folder.path("calls") + ":evry=2");
    REQUIRE(record.size() == 1);
    CHECK_MESSAGE(count(record, "kvjit: warning: KVJIT_RECORD has \"evry", "nothing is recorded") == 1, record[0]);
    const auto name = lines_of(folder, "KVJIT_RECRD=" + folder.path("calls"));
    REQUIRE(name.size() == 1);
    CHECK_MESSAGE(count(name, "kvjit: warning: KVJIT_RECRD ", "the nearest is KVJIT_RECORD") == 1, name[0]);
    const auto logged = lines_of(folder, "KVJIT_PERF=2 KVJIT_LOG=warning");
    REQUIRE(logged.size() == 1);
    CHECK_MESSAGE(count(logged, "kvjit: warning: KVJIT_PERF is \"2\"") == 1, logged[0]);
}

TEST_CASE("a profiler's library that can't be used is said when a kernel is loaded") {
    const TemporaryFolder folder;
    for (const char* library : {"/nowhere/collector.so", "libc.so.6"}) {
        const auto lines = lines_of(folder, std::string("INTEL_JIT_PROFILER64=") + library);
        REQUIRE(lines.size() == 1);
        const std::string begin = std::string("kvjit: warning: INTEL_JIT_PROFILER64 is \"") + library + "\"";
        CHECK_MESSAGE(count(lines, begin, "no profiler is told of kernels") == 1, lines[0]);
    }
}

TEST_CASE("a level that there is not is said, and counts as warning") {
    const TemporaryFolder folder;
    const auto lines = lines_of(folder, "KVJIT_LOG=loud");
    REQUIRE(lines.size() == 1);
    CHECK(lines[0] ==
          "kvjit: warning: KVJIT_LOG is \"loud\"; it takes warning, info, debug or trace: it counts as warning");
}
