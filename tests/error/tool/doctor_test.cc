// `kvjit doctor`.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "child.h"
#include "filled_cache.h"
#include "support/temporary_folder.h"

namespace kvjit::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

Json finding(const Json& all, const std::string& what, const std::string& health) {
    for (const Json& each : all) {
        if (each["what"] == what && each["health"] == health) return each;
    }
    return {};
}

/// The only problem is `what`, and the command's status says that there is one.
void check_problem(const std::string& what, const std::string& says, const std::string& fix) {
    const ChildResult bad = run_kvjit({"doctor", "--json"});
    CHECK(bad.exit_code == 1);
    const Json all = Json::parse(bad.out);
    CHECK(std::ranges::count(all, "problem", [](const Json& each) { return each["health"]; }) == 1);
    const Json found = finding(all, what, "problem");
    REQUIRE_MESSAGE(!found.is_null(), bad.out);
    CHECK_MESSAGE(mentions(found["text"], says), found.dump());
    CHECK_MESSAGE(mentions(found["fix"], fix), found.dump());
}

TEST_CASE("doctor finds what is there, and says what is wrong with a fix") {
    const FilledCache cache;
    const Json good = json_of({"doctor", "--json"});
    for (const char* what : {"kvjit", "CPU", "target", "compiler", "disk cache", "environment"}) {
        CHECK_MESSAGE(!finding(good, what, "ok").is_null(), what);
    }
    CHECK(mentions(finding(good, "disk cache", "ok")["text"], "3 entries"));
    for (const Json& each : good) CHECK((each["health"] == "ok" || !each["fix"].get<std::string>().empty()));

    setenv("KVJIT_PREF", "1", 1);
    const ChildResult variable = run_kvjit({"doctor"});
    unsetenv("KVJIT_PREF");
    CHECK(variable.exit_code == 1);
    CHECK(mentions(variable.out, "the nearest is KVJIT_PERF\n"));
    CHECK(mentions(variable.out, "fix: unset KVJIT_PREF"));

    change_byte(cache.entries()[0], 300);
    const ChildResult bad = run_kvjit({"doctor", "--json"});
    CHECK(bad.exit_code == 1);
    CHECK(mentions(finding(Json::parse(bad.out), "disk cache", "problem")["fix"], "kvjit cache verify"));
}

/// Files of this process and its children can't grow beyond `bytes` while this object lives, as on a full disk.
class FileLimit {
public:
    explicit FileLimit(rlim_t bytes) {
        REQUIRE(getrlimit(RLIMIT_FSIZE, &before_) == 0);
        const rlimit limit{bytes, before_.rlim_max};
        REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    }
    ~FileLimit() { setrlimit(RLIMIT_FSIZE, &before_); }
    FileLimit(const FileLimit&) = delete;
    FileLimit& operator=(const FileLimit&) = delete;

private:
    rlimit before_{};
};

TEST_CASE("doctor sees that nothing can be added to the cache, and leaves nothing there") {
    const FilledCache cache;
    const std::size_t before = cache.entries().size();
    {
        const FileLimit limit(32 * 1024);
        check_problem("disk cache", "hits work, nothing is added; 3 entries", "kvjit cache prune");
    }
    CHECK(cache.entries().size() == before);
    CHECK(json_of({"cache", "verify", "--json"}).dump().find("doctor") == std::string::npos);
}

TEST_CASE("doctor reads bundles") {
    const FilledCache cache;
    const TemporaryFolder folder;
    const std::string none = folder.write("none.kvjb", "no bundle");
    for (const auto& [file, fix] :
         {std::pair{none, "make it anew"}, std::pair{folder.path("absent"), "name a bundle"}}) {
        const ChildResult bad = run_kvjit({"doctor", "--json", "--bundle", file});
        CHECK(bad.exit_code == 1);
        CHECK(mentions(finding(Json::parse(bad.out), "bundle", "problem")["fix"], fix));
    }
    const std::string good = folder.path("good.kvjb");
    REQUIRE(run_kvjit({"bundle", "create", good, "op=Merge,head_dim=64", "--targets", "x86-64"}).exit_code == 0);
    const Json json = json_of({"doctor", "--json", "--bundle", good});
    CHECK(mentions(finding(json, "bundle", "ok")["text"], ": 1 program, 1 for this CPU"));
}

TEST_CASE("a compiler that is absent is a note, one that a variable names is a problem") {
    const FilledCache cache;
    const TemporaryFolder folder;
    fs::copy_file(KVJIT_LIBRARY, folder.path(fs::path(KVJIT_LIBRARY).filename()));
    {
        const Variable alone("LD_LIBRARY_PATH", folder.path());
        const ChildResult absent = run_kvjit({"doctor", "--json"});
        const Json note = finding(Json::parse(absent.out), "compiler", "note");
        CHECK(mentions(note["text"], folder.path("libkvjit_compiler.so")));
    }
    const std::string none = folder.path("nowhere.so");
    const Variable named("KVJIT_COMPILER", none);
    check_problem("compiler", none, "unset KVJIT_COMPILER");
}

TEST_CASE("what a variable names must be usable") {
    const FilledCache cache;
    const TemporaryFolder folder;
    const std::string file = folder.write("file", ""), empty = folder.path("empty"), open = folder.path("open");
    fs::create_directory(empty);
    fs::create_directory(open);
    REQUIRE(chmod(open.c_str(), 0777) == 0);
    struct Case {
        const char* variable;
        std::string value;
        const char *what, *says, *fix;
    };
    for (const Case& test : std::vector<Case>{
             {"KVJIT_TEMPLATE_DIR", empty, "environment", "can't be read", "the folder templates"},
             {"KVJIT_TEMPLATE_DIR", file, "environment", "can't be read", "the folder templates"},
             {"KVJIT_NVRTC", "/nowhere.so", "NVRTC", "there is no /nowhere.so", "unset KVJIT_NVRTC"},
             {"KVJIT_RECORD", open, "environment", "other users may write to it", "set KVJIT_RECORD to a folder"},
             {"KVJIT_RECORD", file + "/calls:every=2", "environment", "Not a directory", "set KVJIT_RECORD"},
             {"KVJIT_RECORD", "/proc/calls", "environment", "the folder /proc/calls can't be used", "set KVJIT_RECORD"},
             {"KVJIT_RECORD", empty + ":call=x", "environment", "has \"call=x\"; its value is", "or correct it"},
             {"KVJIT_TRACE_SPECS", empty, "environment", "Is a directory", "set KVJIT_TRACE_SPECS to a file"},
             {"KVJIT_TRACE_SPECS", file + "/specs.txt", "environment", "Not a directory", "set KVJIT_TRACE_SPECS"},
             {"KVJIT_CACHE_DIR", "/proc/cache", "disk cache", "/proc/cache can't be used", "set KVJIT_CACHE_DIR"},
             {"INTEL_JIT_PROFILER64", "/nowhere.so", "environment", "/nowhere.so: cannot open",
              "which a profiler sets"},
             {"INTEL_JIT_PROFILER64", "libc.so.6", "environment", "it lacks the function", "which a profiler sets"},
             {"KVJIT_DEBUG", "2", "environment", "it takes 0, 1 or frames", "unset KVJIT_DEBUG"},
         }) {
        CAPTURE(std::string(test.variable));
        CAPTURE(test.value);
        const Variable variable(test.variable, test.value);
        check_problem(test.what, test.says, test.fix);
    }
}

TEST_CASE("what a variable names may be missing where it can be made, and is missing afterwards") {
    const FilledCache cache;
    const TemporaryFolder folder;
    const std::string calls = folder.path("deep/calls"), specs = folder.path("specs.txt");
    const Variable record("KVJIT_RECORD", calls + ":every=2"), trace("KVJIT_TRACE_SPECS", specs);
    const Variable templates("KVJIT_TEMPLATE_DIR", KVJIT_TEMPLATES);
    const ChildResult good = run_kvjit({"doctor", "--json"});
    CHECK_MESSAGE(good.exit_code == 0, good.out);
    const std::string set = finding(Json::parse(good.out), "environment", "ok")["text"];
    for (const std::string& value : {calls + ":every=2", specs, std::string(KVJIT_TEMPLATES)}) {
        CHECK(mentions(set, "=" + value));
    }
    CHECK(fs::is_empty(folder.path()));
    folder.write("specs.txt", "op=Merge\n");
    CHECK(run_kvjit({"doctor"}).exit_code == 0);
    CHECK(fs::file_size(specs) == 9);
}

}  // namespace
}  // namespace kvjit::test
