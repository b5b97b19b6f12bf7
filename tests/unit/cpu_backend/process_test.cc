// What a process that only loads has to map, and where it finds the compiler, seen from another one.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "support.h"

using namespace kvjit;
namespace fs = std::filesystem;

namespace {

constexpr std::string_view kTwice =
    "extern \"C\" __attribute__((visibility(\"hidden\"))) int twice(int x) { return 2 * x; }";

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

// `variable`: the whole environment, "NAME=value".
Outcome run_probe(const fs::path& program, const std::string& object, std::string plugin, std::string variable) {
    std::vector<std::string> words = {program, object, "twice", std::move(plugin), "40"};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    char* environment[] = {variable.data(), nullptr};
    Outcome outcome;
    int status = 0;
    REQUIRE(posix_spawn(&outcome.process, program.c_str(), nullptr, nullptr, arguments.data(), environment) == 0);
    REQUIRE(waitpid(outcome.process, &status, 0) == outcome.process);
    if (WIFEXITED(status)) outcome.status = WEXITSTATUS(status);
    return outcome;
}

std::string perf_map(pid_t process) {
    return "/tmp/perf-" + std::to_string(process) + ".map";
}

}  // namespace

TEST_CASE("a process that loads and doesn't compile maps no LLVM and no Clang") {
    const Folder folder;
    const Outcome outcome = run_probe(KVJIT_TEST_LOAD_PROBE, folder.object(), KVJIT_TEST_COMPILER, "KVJIT_PERF=0");
    CHECK(outcome.status == kRight);
    CHECK_FALSE(fs::exists(perf_map(outcome.process)));
}

TEST_CASE("KVJIT_PERF=1 names each function for perf") {
    const Folder folder;
    const Outcome outcome = run_probe(KVJIT_TEST_LOAD_PROBE, folder.object(), KVJIT_TEST_COMPILER, "KVJIT_PERF=1");
    CHECK(outcome.status == kRight);
    const std::string map = test::read_file(perf_map(outcome.process));
    fs::remove(perf_map(outcome.process));
    CHECK(map.find(" probe:twice\n") != std::string::npos);
}

TEST_CASE("the compiler is found through KVJIT_COMPILER, beside the program and in ../lib") {
    const Folder folder;
    const fs::path program = folder.path / "bin" / "probe";
    fs::create_directories(folder.path / "bin");
    fs::create_directories(folder.path / "lib");
    fs::copy_file(KVJIT_TEST_LOAD_PROBE, program);
    const auto status = [&](const std::string& variable) {
        return run_probe(program, folder.object(), "", variable).status;
    };
    CHECK(status("A=b") == kNoIdentity);
    CHECK(status("KVJIT_COMPILER=" KVJIT_TEST_COMPILER) == kRight);
    fs::create_symlink(KVJIT_TEST_COMPILER, folder.path / "lib" / "libkvjit_compiler.so");
    CHECK(status("A=b") == kRight);
    fs::rename(folder.path / "lib" / "libkvjit_compiler.so", folder.path / "bin" / "libkvjit_compiler.so");
    CHECK(status("A=b") == kRight);
    CHECK(status("KVJIT_COMPILER=/nowhere") == kNoIdentity);
}
