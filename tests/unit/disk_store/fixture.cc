#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "fixture.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "disk_cache/entry.h"

namespace kvjit::rt::test {
namespace {

constexpr uid_t kNobody = 65534;

std::string drain(int fd) {
    std::string text;
    char buffer[512];
    ssize_t got;
    while ((got = ::read(fd, buffer, sizeof buffer)) > 0) text.append(buffer, static_cast<std::size_t>(got));
    return text;
}

[[noreturn]] void report_and_exit(int fd, const std::string& text) {
    const ssize_t put = ::write(fd, text.data(), text.size());
    ::_exit(put == static_cast<ssize_t>(text.size()) ? 0 : 1);
}

}  // namespace

DiskStoreOptions options_for(const std::string& folder, std::vector<std::string>* messages) {
    static UnsyncedCalls unsynced;
    DiskStoreOptions options;
    options.folder = folder;
    options.max_bytes = std::int64_t{512} << 20;
    options.calls = &unsynced;
    if (messages) options.log = [messages](int, const std::string& message) { messages->push_back(message); };
    return options;
}

EntryKey key_of(int number) {
    return {"attend_decode;kHeadDim=" + std::to_string(number) + ";abi=1", "4f1c09d2", "compiler=clang;flags=-O3"};
}

EntryKey made_by(EntryKey key, const std::string& maker) {
    key.maker = maker;
    return key;
}

EntryKey made_by_anyone(EntryKey key) {
    key.maker = gen::fail(KVJIT_COMPILER_MISSING, "compiler", "there is none");
    return key;
}

Entry entry_of(int number, std::size_t object_bytes) {
    Entry entry{"", "// source " + std::to_string(number) + "\n", "log " + std::to_string(number)};
    for (std::size_t i = 0; i < object_bytes; ++i) entry.object += static_cast<char>(i * 7 + number);
    return entry;
}

bool equal(const DiskStore::Lookup& answer, const Entry& entry) {
    const auto* found = std::get_if<DiskStore::Found>(&answer);
    return found && found->entry.object == entry.object && found->entry.source == entry.source &&
           found->entry.log == entry.log;
}

bool is_there(const DiskStore::Lookup& answer) {
    return std::holds_alternative<DiskStore::Found>(answer);
}

bool is_not_there(const DiskStore::Lookup& answer) {
    return std::holds_alternative<NotThere>(answer);
}

std::string failure(const DiskStore::Lookup& answer) {
    const auto* failed = std::get_if<Failed>(&answer);
    return failed ? failed->reason : "";
}

std::string entry_path(const std::string& folder, const EntryKey& key) {
    const std::string name = entry_name(key, *key.maker);
    return folder + '/' + name.substr(0, 2) + '/' + name + ".kvjit";
}

std::string lock_path(const std::string& folder, const EntryKey& key) {
    const std::string name = entry_name(key, *key.maker);
    return folder + '/' + name.substr(0, 2) + '/' + name + ".lock";
}

std::string only_entry(const std::string& folder) {
    const std::vector<std::string> entries = files_in(folder, ".kvjit");
    REQUIRE(entries.size() == 1);
    return entries[0];
}

void write_file(const std::string& path, const std::string& bytes) {
    ::unlink(path.c_str());  // some file systems sync a file that is cut and written anew
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600);
    REQUIRE(fd >= 0);
    REQUIRE(::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    ::close(fd);
}

mode_t mode_of(const std::string& path) {
    struct stat status{};
    REQUIRE(::lstat(path.c_str(), &status) == 0);
    return status.st_mode & 07777;
}

void make_unwritable(const std::string& folder) {
    for (const auto& item : std::filesystem::recursive_directory_iterator(folder)) {
        if (item.is_directory()) REQUIRE(::chmod(item.path().c_str(), 0500) == 0);
    }
    REQUIRE(::chmod(folder.c_str(), 0500) == 0);
}

Child::Child(std::function<std::string()> body) {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    id_ = ::fork();
    REQUIRE(id_ >= 0);
    if (id_ == 0) {
        ::close(ends[0]);
        report_and_exit(ends[1], body());
    }
    ::close(ends[1]);
    pipe_ = ends[0];
}

Child::~Child() {
    if (id_ > 0) {
        kill();
        wait();
    }
    ::close(pipe_);
}

void Child::kill() {
    ::kill(id_, SIGKILL);
}

std::string Child::wait() {
    const std::string said = drain(pipe_);
    int status = 0;
    REQUIRE(::waitpid(std::exchange(id_, 0), &status, 0) > 0);
    if (WIFSIGNALED(status)) return "killed by signal " + std::to_string(WTERMSIG(status));
    return WEXITSTATUS(status) == 0 ? said : "exit status " + std::to_string(WEXITSTATUS(status));
}

std::string in_child(std::function<std::string()> body) {
    return Child(std::move(body)).wait();
}

std::string as_ordinary_user(const std::string& folder, std::function<std::string()> body) {
    if (::geteuid() != 0) return in_child(std::move(body));
    REQUIRE(::chown(folder.c_str(), kNobody, kNobody) == 0);
    return in_child([&]() -> std::string {
        if (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) return "can't become nobody";
        return body();
    });
}

}  // namespace kvjit::rt::test
