// What a process that only loads has to map, seen from another one.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "support.h"

using namespace kvjit;

namespace {

constexpr std::string_view kTwice = "extern \"C\" __attribute__((visibility(\"hidden\"))) int twice(int x) { return 2 * x; }";

// A file that goes with the test.
class ObjectFile {
public:
    explicit ObjectFile(const std::string& bytes)
        : path_(std::filesystem::temp_directory_path() / ("kvjit_probe_" + std::to_string(getpid()) + ".o")) {
        std::ofstream(path_, std::ios::binary) << bytes;
    }
    ~ObjectFile() { std::filesystem::remove(path_); }
    std::string path() const { return path_; }

private:
    std::filesystem::path path_;
};

struct Outcome {
    int status = -1;
    pid_t process = 0;
};

Outcome run_probe(const ObjectFile& object, const char* setting) {
    const std::string path = object.path();
    std::vector<std::string> words = {KVJIT_TEST_LOAD_PROBE, path, "twice", KVJIT_TEST_COMPILER, "40"};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    std::string variable = setting;
    char* environment[] = {variable.data(), nullptr};
    Outcome outcome;
    int status = 0;
    REQUIRE(posix_spawn(&outcome.process, words[0].c_str(), nullptr, nullptr, arguments.data(), environment) == 0);
    REQUIRE(waitpid(outcome.process, &status, 0) == outcome.process);
    if (WIFEXITED(status)) outcome.status = WEXITSTATUS(status);
    return outcome;
}

std::string perf_map(pid_t process) { return "/tmp/perf-" + std::to_string(process) + ".map"; }

}  // namespace

TEST_CASE("a process that loads and doesn't compile maps no LLVM and no Clang") {
    const ObjectFile object(test::compile(kTwice, rt::host_target()));
    const Outcome outcome = run_probe(object, "KVJIT_PERF=0");
    CHECK(outcome.status == 0);
    CHECK_FALSE(std::filesystem::exists(perf_map(outcome.process)));
}

TEST_CASE("KVJIT_PERF=1 names each function for perf") {
    const ObjectFile object(test::compile(kTwice, rt::host_target()));
    const Outcome outcome = run_probe(object, "KVJIT_PERF=1");
    CHECK(outcome.status == 0);
    const std::string map = test::read_file(perf_map(outcome.process));
    std::filesystem::remove(perf_map(outcome.process));
    CHECK(map.find(" probe:twice\n") != std::string::npos);
}
