// Folders that can't be used: said once, and the call goes on.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "support.h"
#include "support/child_process.h"

namespace kvjit::test {
namespace {

const char* const kSpec = "op=MultiHeadCacheAttention,head_dim=64,group=2,t1=f32,cache_mode=offset";

/// What an engine that records to `folder` says of three calls, all of which succeed.
std::vector<std::string> warnings_of(const std::string& folder) {
    Heard heard;
    EngineOptions options;
    options.set_log(heard);
    options.record = folder.c_str();
    const auto engine = Engine::create(options).value();
    const ApiCall call = scattered_call(kSpec, 4), same = scattered_call(kSpec, 4);
    auto plan = engine.kernel(call.spec).value().plan(call.batch).value();
    for (int i = 0; i < 3; ++i) plan.run(call.tensors).value();
    const auto plain = Engine::create().value();
    plain.kernel(same.spec).value().plan(same.batch).value().run(same.tensors).value();
    CHECK(call.snapshot() == same.snapshot());
    return heard.warnings;
}

void expect_once(const std::vector<std::string>& warnings, const std::string& part) {
    REQUIRE(warnings.size() == 1);
    CHECK_MESSAGE(warnings[0].find(part) != std::string::npos, warnings[0]);
    CHECK_MESSAGE(warnings[0].find("nothing more is recorded") != std::string::npos, warnings[0]);
}

TEST_CASE("missing folders are made, private, and so are files; no draft stays") {
    const TemporaryFolder folder;
    const std::string calls = folder.path("a/b");
    CHECK(warnings_of(calls).empty());
    struct stat status{};
    REQUIRE(stat(calls.c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0700);
    CHECK(files_in(calls).size() == 3);
    CHECK(files_in(calls, ".safetensors").size() == 3);
    for (const std::string& file : files_in(calls)) {
        REQUIRE(stat(file.c_str(), &status) == 0);
        CHECK((status.st_mode & 0777) == 0600);
    }
}

TEST_CASE("drafts of killed processes are removed, those that are being written are not") {
    const TemporaryFolder folder;
    const std::string left = folder.write("1-2-000001-Merge.safetensors.2.3.4.tmp", "half of a recording");
    const std::string written = folder.write("1-5-000001-Merge.safetensors.5.6.7.tmp", "half of a recording");
    const std::string other = folder.write("notes.tmp", "of another program");
    const int writer = open(written.c_str(), O_RDONLY | O_CLOEXEC);
    REQUIRE(flock(writer, LOCK_EX) == 0);
    CHECK(warnings_of(folder.path()).empty());
    CHECK(!std::filesystem::exists(left));
    CHECK(std::filesystem::exists(written));
    CHECK(std::filesystem::exists(other));
    CHECK(files_in(folder.path(), ".safetensors").size() == 3);
    close(writer);
}

TEST_CASE("a link, a file, a folder that others may write to") {
    const TemporaryFolder folder;
    std::filesystem::create_directory(folder.path("there"));
    std::filesystem::create_directory_symlink(folder.path("there"), folder.path("link"));
    expect_once(warnings_of(folder.path("link")), "it is a symbolic link");
    CHECK(files_in(folder.path("there")).empty());
    expect_once(warnings_of(folder.write("file", "x")), "Not a directory");
    chmod(folder.path("there").c_str(), 0777);
    expect_once(warnings_of(folder.path("there")), "other users may write to it");
}

TEST_CASE("a read-only file system, and a full one") {
    expect_once(warnings_of("/proc/kvjit-calls"), "can't be used");
    // /dev/full is no folder; a limit on files' sizes stops a write as a full disk does.
    const TemporaryFolder folder;
    if (kSanitized) return;
    CHECK(in_child([&] {
              rlimit limit{1024, 1024};
              if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
              Heard heard;
              EngineOptions options;
              options.set_log(heard);
              options.cache_dir = "";
              const std::string calls = folder.path("calls");
              options.record = calls.c_str();
              const auto engine = Engine::create(options).value();
              const ApiCall call = scattered_call("op=Merge,head_dim=64,t1=f32", 4);
              PlanOptions alone;
              alone.num_threads = 1;
              auto plan = engine.kernel(call.spec).value().plan(call.batch, alone).value();
              for (int i = 0; i < 3; ++i) plan.run(call.tensors).value();
              if (!files_in(calls).empty()) return 3;
              return heard.warnings.size() == 1 && heard.warnings[0].find("can't write") != std::string::npos ? 0 : 4;
          }) == 0);
}

TEST_CASE("the environment's setting, and one that isn't understood") {
    const TemporaryFolder folder;
    const auto run = [](const std::string& value, Heard& heard) {
        setenv("KVJIT_RECORD", value.c_str(), 1);
        EngineOptions options;
        options.set_log(heard);
        const auto engine = Engine::create(options).value();
        unsetenv("KVJIT_RECORD");
        const ApiCall call = scattered_call(kSpec, 4);
        engine.kernel(call.spec).value().plan(call.batch).value().run(call.tensors).value();
    };
    Heard recorded, heard;
    run(folder.path("calls"), recorded);
    CHECK(recorded.notes.size() == 1);
    CHECK(files_in(folder.path("calls")).size() == 1);
    run(folder.path("calls") + ":nth=3", heard);
    REQUIRE(heard.warnings.size() == 1);
    CHECK_MESSAGE(heard.warnings[0].ends_with("nothing is recorded"), heard.warnings[0]);
    CHECK(files_in(folder.path("calls")).size() == 1);
}

}  // namespace
}  // namespace kvjit::test
