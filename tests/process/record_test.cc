// KVJIT_RECORD in a process of an engine, and `kvjit replay` on what it wrote.
#include <doctest/doctest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "fixture.h"

using namespace kvjit::test;

namespace {

/// The command's exit status; its words go to `file`.
int replay(const std::string& arguments, const std::string& file, const std::string& before = "env") {
    const std::string command = before + " " KVJIT_TOOL " replay " + arguments + " > '" + file + "' 2>&1";
    return WEXITSTATUS(std::system(command.c_str()));
}

std::string quoted_files(const std::string& folder) {
    std::string words;
    for (const std::string& file : files_in(folder)) words += " '" + file + "'";
    return words;
}

}  // namespace

TEST_CASE("a process that records gives the same output, and its calls replay on every target") {
    const TemporaryFolder folder;
    const std::string calls = folder.path("calls"), said = folder.path("said");
    const Report plain = run_child(folder.path("cache"));
    const Report recorded = run_child(folder.path("cache"), {"KVJIT_RECORD=" + calls});
    CHECK(recorded["status"] == "KVJIT_OK");
    CHECK(recorded["output"] == plain["output"]);
    REQUIRE(files_in(calls).size() == 1);
    for (const char* how : {"--bits", "--oracle", "--oracle --target x86-64", "--target cuda-emulated"}) {
        CAPTURE(std::string(how));
        CHECK_MESSAGE(replay(how + quoted_files(calls), said) == 0, read_file(said));
    }
    // The variable is still set where the user replays: that adds no call.
    CHECK(replay(quoted_files(calls), said, "env KVJIT_RECORD='" + calls + "'") == 0);
    CHECK(files_in(calls).size() == 1);
}

TEST_CASE("processes record to one folder, and a filter counts in each of them") {
    const TemporaryFolder folder;
    const std::string calls = folder.path("calls");
    const std::vector<std::string> environment = {"KVJIT_RECORD=" + calls + ":call=1,op=MultiHeadCacheAttention"};
    Child first(folder.path("cache"), environment), second(folder.path("cache"), environment);
    CHECK(first.finish()["status"] == "KVJIT_OK");
    CHECK(second.finish()["status"] == "KVJIT_OK");
    CHECK(files_in(calls, ".safetensors").size() == 2);
    CHECK(files_in(calls).size() == 2);
}

TEST_CASE("settings that aren't understood, and folders that can't be used, fail nothing") {
    const TemporaryFolder folder;
    const Report plain = run_child(folder.path("cache"));
    std::filesystem::create_directory(folder.path("there"));
    std::filesystem::create_directory_symlink(folder.path("there"), folder.path("link"));
    for (const std::string& setting :
         {folder.path("calls") + ":every", std::string(":"), folder.path("link"), std::string("/proc/none"),
          folder.write("file", "x"), std::string("/dev/full")}) {
        CAPTURE(setting);
        const Report report = run_child(folder.path("cache"), {"KVJIT_RECORD=" + setting});
        CHECK(report["status"] == "KVJIT_OK");
        CHECK(report["output"] == plain["output"]);
    }
    CHECK(files_in(folder.path("there")).empty());
    CHECK(!std::filesystem::exists(folder.path("calls")));
}
