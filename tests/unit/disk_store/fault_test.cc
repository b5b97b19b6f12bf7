// Every system call fails in turn, or is the last that the process makes, until the cache's work gets through. What
// must hold: no call fails, no bad entry can be read, nobody is blocked, and what failed works the next time.
#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "fixture.h"

using namespace kvjit::rt;
using namespace kvjit::rt::test;

namespace {

enum class Fault {
    kOnce,       // this call fails
    kFromNowOn,  // and so do all after it
    kShort,      // this call fails; if it writes, half of the bytes have gone out
    kKill        // the process dies before it
};

/// The real calls, but for the one with number `at` (from 1).
class FaultyCalls : public FileCalls {
public:
    FaultyCalls(Fault fault, int error, int at) : fault_(fault), error_(error), at_(at) {}

    bool reached() const { return count_ >= at_; }

    int make_folder(int folder, const char* name, mode_t mode) override {
        return fails() ? -error_ : FileCalls::make_folder(folder, name, mode);
    }
    int open(int folder, const char* name, int flags, mode_t mode) override {
        return fails() ? -error_ : FileCalls::open(folder, name, flags, mode);
    }
    int status(int fd, struct stat* out) override { return fails() ? -error_ : FileCalls::status(fd, out); }
    int status_of(int folder, const char* name, struct stat* out) override {
        return fails() ? -error_ : FileCalls::status_of(folder, name, out);
    }
    ssize_t read(int fd, void* out, std::size_t bytes) override {
        return fails() ? -error_ : FileCalls::read(fd, out, bytes);
    }
    ssize_t write(int fd, const void* from, std::size_t bytes) override {
        if (!fails()) return FileCalls::write(fd, from, (bytes + 1) / 2);
        if (fault_ == Fault::kShort) FileCalls::write(fd, from, (bytes + 1) / 2);
        return -error_;
    }
    int sync(int) override { return fails() ? -error_ : 0; }
    int rename(int folder, const char* from, const char* to) override {
        return fails() ? -error_ : FileCalls::rename(folder, from, to);
    }
    int remove(int folder, const char* name) override { return fails() ? -error_ : FileCalls::remove(folder, name); }
    int touch(int folder, const char* name) override { return fails() ? -error_ : FileCalls::touch(folder, name); }
    int lock(int fd) override { return fails() ? -error_ : FileCalls::lock(fd); }
    std::expected<std::vector<std::string>, int> list(int folder, std::size_t at_most) override {
        if (fails()) return std::unexpected(-error_);
        return FileCalls::list(folder, at_most);
    }

private:
    bool fails() {
        ++count_;
        if (fault_ == Fault::kKill && count_ == at_) ::kill(::getpid(), SIGKILL);
        return fault_ == Fault::kFromNowOn ? reached() : count_ == at_;
    }

    Fault fault_;
    int error_;
    int at_;
    int count_ = 0;
};

/// A miss, a compile, a hit. The entry found, if any, is the one published.
std::string use(FileCalls& calls, const std::string& folder) {
    auto options = options_for(folder);
    options.calls = &calls;
    options.lock_wait = std::chrono::milliseconds(20);
    const auto store = open_disk_store(options);
    if (is_there(store->find(key_of(1)))) return "found before it was published";
    const auto guard = store->lock(key_of(1));
    if (!guard) return "no guard";
    store->publish(key_of(1), entry_of(1));
    const DiskStore::Lookup found = store->find(key_of(1));
    return is_there(found) && !equal(found, entry_of(1)) ? "a wrong entry" : "";
}

/// After whatever happened: with calls that work, no warning, no wrong entry, a free lock, and a publish that is found.
void check_recovered(const std::string& folder) {
    std::vector<std::string> messages;
    auto options = options_for(folder, &messages);
    options.lock_wait = std::chrono::milliseconds(20);
    const auto store = open_disk_store(options);
    const DiskStore::Lookup found = store->find(key_of(1));
    CHECK((is_not_there(found) || equal(found, entry_of(1))));
    CHECK(store->lock(key_of(1))->held());
    store->publish(key_of(1), entry_of(1));
    CHECK(equal(store->find(key_of(1)), entry_of(1)));
    CHECK(messages.empty());
}

constexpr int kFewestCalls = 20;

/// The real calls; those of a publish leave their names in `order`.
struct RecordingCalls : FileCalls {
    std::string order;
    ssize_t write(int fd, const void* from, std::size_t bytes) override {
        order += "write ";
        return FileCalls::write(fd, from, bytes);
    }
    int sync(int fd) override {
        struct stat status{};
        FileCalls::status(fd, &status);
        order += S_ISDIR(status.st_mode) ? "sync-folder " : "sync-file ";
        return FileCalls::sync(fd);
    }
    int rename(int folder, const char* from, const char* to) override {
        order += "rename ";
        return FileCalls::rename(folder, from, to);
    }
};

}  // namespace

TEST_CASE("the bytes are on the disk before the name is, and then the name") {
    TemporaryFolder temporary;
    RecordingCalls calls;
    auto options = options_for(temporary.path());
    options.calls = &calls;
    const auto store = open_disk_store(options);
    store->publish(key_of(1), entry_of(1));
    CHECK(calls.order == "sync-folder write sync-file rename sync-folder ");  // the first one: of the shard's name
    calls.order.clear();
    store->publish(key_of(1), entry_of(2));
    CHECK(calls.order == "write sync-file rename sync-folder ");
}

TEST_CASE("any call may fail") {
    for (Fault fault : {Fault::kOnce, Fault::kFromNowOn, Fault::kShort}) {
        for (int error : {EIO, ENOSPC}) {
            int at = 1;
            for (bool reached = true; reached; ++at) {
                CAPTURE(error);
                CAPTURE(at);
                TemporaryFolder temporary;
                const std::string folder = temporary.path("a/cache");
                FaultyCalls calls(fault, error, at);
                CHECK(use(calls, folder) == "");
                reached = calls.reached();
                const bool can_clean_up = fault != Fault::kFromNowOn && std::filesystem::exists(folder);
                CHECK((!can_clean_up || files_in(folder, ".tmp").empty()));
                check_recovered(folder);
            }
            CHECK(at > kFewestCalls);
        }
    }
}

TEST_CASE("any call may be the process's last") {
    int at = 1;
    for (bool killed = true; killed; ++at) {
        CAPTURE(at);
        TemporaryFolder temporary;
        FaultyCalls calls(Fault::kKill, 0, at);
        const std::string end = in_child([&] { return use(calls, temporary.path("a/cache")); });
        killed = end == "killed by signal 9";
        CHECK((killed || end.empty()));
        check_recovered(temporary.path("a/cache"));
    }
    CHECK(at > kFewestCalls);
}

TEST_CASE("an entry that can't be read for the moment is not removed, and not said to be missing") {
    TemporaryFolder temporary;
    open_disk_store(options_for(temporary.path()))->publish(key_of(1), entry_of(1));
    const std::string path = entry_path(temporary.path(), key_of(1));
    for (const int error : {EMFILE, EIO, ENOMEM}) {
        for (int at = 3; at <= 7;
             ++at) {  // after the folder's open and fstat: those of the shard; open, fstat and read
            CAPTURE(error);
            CAPTURE(at);
            FaultyCalls calls(Fault::kOnce, error, at);
            std::vector<std::string> messages;
            auto options = options_for(temporary.path(), &messages);
            options.calls = &calls;
            const auto store = open_disk_store(options);
            const std::string why = failure(store->find(key_of(1)));
            CHECK(path.starts_with(why.substr(0, why.find(' '))));
            CHECK(why.ends_with(std::generic_category().message(error)));
            CHECK(messages == std::vector{why});
            CHECK(equal(store->find(key_of(1)), entry_of(1)));
        }
    }
}

TEST_CASE("a search for any maker's entry that fails for the moment is not said to have found none") {
    TemporaryFolder temporary;
    open_disk_store(options_for(temporary.path()))->publish(key_of(1), entry_of(1));
    const EntryKey key = made_by_anyone(key_of(1));
    for (int at = 3; at <= 8; ++at) {  // the shard's open and fstat; its list; the entry's open, fstat and read
        CAPTURE(at);
        FaultyCalls calls(Fault::kOnce, EIO, at);
        auto options = options_for(temporary.path());
        options.calls = &calls;
        const auto store = open_disk_store(options);
        CHECK(failure(store->find(key)).ends_with(std::generic_category().message(EIO)));
        CHECK(equal(store->find(key), entry_of(1)));
    }
}

TEST_CASE("where the folder can't be opened, every answer says why") {
    TemporaryFolder temporary;
    for (int at = 1; at <= 2; ++at) {
        FaultyCalls calls(Fault::kOnce, EMFILE, at);
        std::vector<std::string> messages;
        auto options = options_for(temporary.path(), &messages);
        options.calls = &calls;
        const auto store = open_disk_store(options);
        const std::string why = "the cache folder " + temporary.path() + " can't be used: Too many open files";
        for (int number : {1, 2}) CHECK(failure(store->find(key_of(number))) == why);
        CHECK(messages == std::vector{why + "; programs are kept in memory only"});
    }
}
