// What a process that only loads has to map, and where it finds the compiler, seen from another one.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <vector>

#include "jitdump.h"
#include "support.h"
#include "support/collected.h"

using namespace kvjit;
namespace fs = std::filesystem;

namespace {

constexpr std::string_view kTwice = R"(#line 1 "twice.cc"
__attribute__((noinline)) static int helper(int x) { asm volatile(""); return x; }
extern "C" __attribute__((visibility("hidden"))) int twice(int x) {
    return helper(x) +
           helper(x);
}
)";

// How much of a function has no relocation in it.
constexpr std::size_t kUnlinkedBytes = 4;

enum ProbeStatus { kRight = 0, kNoIdentity = 5 };

// A folder that goes with the test, with the object to be loaded in it.
class Folder {
public:
    Folder() {
        std::string name = (fs::temp_directory_path() / "kvjit_probe_XXXXXX").string();
        REQUIRE(mkdtemp(name.data()) != nullptr);
        path = name;
        std::ofstream(object(), std::ios::binary) << test::compile(kTwice, rt::host_target());
    }
    ~Folder() { fs::remove_all(path); }
    std::string object() const { return path / "twice.o"; }

    fs::path path;
};

struct Outcome {
    int status = -1;
    pid_t process = 0;
};

// `variables`: the whole environment, each "NAME=value".
Outcome run_probe(const fs::path& program, const std::string& object, std::string plugin,
                  std::vector<std::string> variables) {
    std::vector<std::string> words = {program, object, "twice", std::move(plugin), "40"};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    std::vector<char*> environment;
    for (std::string& variable : variables) environment.push_back(variable.data());
    environment.push_back(nullptr);
    Outcome outcome;
    int status = 0;
    REQUIRE(posix_spawn(&outcome.process, program.c_str(), nullptr, nullptr, arguments.data(), environment.data()) ==
            0);
    REQUIRE(waitpid(outcome.process, &status, 0) == outcome.process);
    if (WIFEXITED(status)) outcome.status = WEXITSTATUS(status);
    return outcome;
}

Outcome run_jitdump(const Folder& folder, const fs::path& into) {
    return run_probe(KVJIT_TEST_LOAD_PROBE, folder.object(), KVJIT_TEST_COMPILER,
                     {"KVJIT_PERF=jitdump", "JITDUMPDIR=" + into.string()});
}

/// LLVM puts it into folders of its own.
fs::path jitdump_file(const fs::path& folder) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
        if (entry.path().extension() == ".dump") return entry.path();
    }
    return {};
}

std::string perf_map(pid_t process) {
    return "/tmp/perf-" + std::to_string(process) + ".map";
}

}  // namespace

TEST_CASE("a process that loads and doesn't compile maps no LLVM and no Clang") {
    const Folder folder;
    const Outcome outcome = run_probe(KVJIT_TEST_LOAD_PROBE, folder.object(), KVJIT_TEST_COMPILER, {"KVJIT_PERF=0"});
    CHECK(outcome.status == kRight);
    CHECK_FALSE(fs::exists(perf_map(outcome.process)));
}

TEST_CASE("KVJIT_PERF=1 names each function for perf") {
    const Folder folder;
    const Outcome outcome = run_probe(KVJIT_TEST_LOAD_PROBE, folder.object(), KVJIT_TEST_COMPILER, {"KVJIT_PERF=1"});
    CHECK(outcome.status == kRight);
    const std::string map = test::read_file(perf_map(outcome.process));
    fs::remove(perf_map(outcome.process));
    CHECK(map.find(" probe:twice\n") != std::string::npos);
    CHECK(map.find(" probe:helper\n") != std::string::npos);
}

TEST_CASE("KVJIT_PERF=jitdump writes each function with its code and its lines") {
    const Folder folder;
    const Outcome outcome = run_jitdump(folder, folder.path);
    CHECK(outcome.status == kRight);
    const test::JitDump dump(test::read_file(jitdump_file(folder.path)));
    REQUIRE(dump.functions.size() == 2);
    const test::JitDump::Function& twice = dump.functions.at("twice");
    CHECK(dump.functions.contains("_ZL6helperi"));
    CHECK(test::read_file(folder.object()).find(twice.code.substr(0, kUnlinkedBytes)) != std::string::npos);
    const std::set<std::string>& lines = dump.lines.at(twice.address);
    CHECK(lines.contains("./twice.cc:3"));
    CHECK(lines.contains("./twice.cc:4"));
}

TEST_CASE("a jitdump that can't be written keeps no program from being loaded") {
    const Folder folder;
    CHECK(run_jitdump(folder, "/proc/nowhere").status == kRight);
}

TEST_CASE("a collector of Intel's interface is told each function, its code and its lines, until it is unloaded") {
    const Folder folder;
    const fs::path file = folder.path / "collected";
    const Outcome outcome =
        run_probe(KVJIT_TEST_LOAD_PROBE, folder.object(), KVJIT_TEST_COMPILER,
                  {"INTEL_JIT_PROFILER64=" KVJIT_TEST_COLLECTOR, "KVJIT_TEST_COLLECTED=" + file.string()});
    CHECK(outcome.status == kRight);
    std::map<std::string, test::CollectedMethod> methods;
    for (const auto& [id, method] : test::collected_methods(test::read_file(file))) methods[method.name] = method;
    REQUIRE(methods.size() == 2);
    const test::CollectedMethod &twice = methods.at("probe:twice"), &helper = methods.at("probe:helper");
    CHECK(twice.file == "./twice.cc");
    CHECK(test::read_file(folder.object()).find(twice.code) != std::string::npos);
    CHECK(twice.code.size() == kUnlinkedBytes);
    CHECK(twice.lines == std::set<std::uint64_t>{2, 3, 4});
    CHECK(twice.ends.back() == twice.bytes);
    CHECK(helper.lines == std::set<std::uint64_t>{1});
    CHECK((helper.address + helper.bytes <= twice.address || twice.address + twice.bytes <= helper.address));
    CHECK(twice.is_unloaded);
    CHECK(helper.is_unloaded);
}

TEST_CASE("the compiler is found through KVJIT_COMPILER, beside the program and in ../lib") {
    const Folder folder;
    const fs::path program = folder.path / "bin" / "probe";
    fs::create_directories(folder.path / "bin");
    fs::create_directories(folder.path / "lib");
    fs::copy_file(KVJIT_TEST_LOAD_PROBE, program);
    const auto status = [&](const std::string& variable) {
        return run_probe(program, folder.object(), "", {variable}).status;
    };
    CHECK(status("A=b") == kNoIdentity);
    CHECK(status("KVJIT_COMPILER=" KVJIT_TEST_COMPILER) == kRight);
    fs::create_symlink(KVJIT_TEST_COMPILER, folder.path / "lib" / "libkvjit_compiler.so");
    CHECK(status("A=b") == kRight);
    fs::rename(folder.path / "lib" / "libkvjit_compiler.so", folder.path / "bin" / "libkvjit_compiler.so");
    CHECK(status("A=b") == kRight);
    CHECK(status("KVJIT_COMPILER=/nowhere") == kNoIdentity);
}
