// The folder keeps to its size, and what was used lately stays.
#include "disk_cache/prune.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "disk_cache/entry.h"
#include "fixture.h"

using namespace kvjit::rt;
using namespace kvjit::rt::test;

namespace {

constexpr std::size_t kObjectBytes = 1000;

std::int64_t entry_bytes() {
    return static_cast<std::int64_t>(encode_entry(key_of(10), entry_of(10, kObjectBytes)).size());
}

std::string path_of(const std::string& folder, int number) {
    return entry_path(folder, key_of(number));
}

/// As if it had last been used so long ago.
void make_old(const std::string& path, int seconds) {
    const timespec then{std::time(nullptr) - seconds, 0};
    const timespec both[2] = {then, then};
    REQUIRE(::utimensat(AT_FDCWD, path.c_str(), both, AT_SYMLINK_NOFOLLOW) == 0);
}

std::int64_t total_bytes(const std::string& folder) {
    std::int64_t total = 0;
    for (const std::string& path : files_in(folder, ".kvjit")) total += std::filesystem::file_size(path);
    return total;
}

/// The real calls, counted; a name that a listing gives counts as one.
struct CountingCalls : UnsyncedCalls {
    int calls = 0;
    int lists = 0;
    int open(int folder, const char* name, int flags, mode_t mode) override {
        ++calls;
        return FileCalls::open(folder, name, flags, mode);
    }
    int status(int fd, struct stat* out) override {
        ++calls;
        return FileCalls::status(fd, out);
    }
    int status_of(int folder, const char* name, struct stat* out) override {
        ++calls;
        return FileCalls::status_of(folder, name, out);
    }
    int remove(int folder, const char* name) override {
        ++calls;
        return FileCalls::remove(folder, name);
    }
    std::expected<std::vector<std::string>, int> list(int folder, std::size_t at_most) override {
        ++lists;
        auto names = FileCalls::list(folder, at_most);
        if (names) calls += static_cast<int>(names->size());
        return names;
    }
};

std::string shard_of(const std::string& folder, int number) {
    return std::filesystem::path(path_of(folder, number)).parent_path();
}

/// Locks a file as its writer does, for as long as this lives.
class Locked {
public:
    explicit Locked(const std::string& path) : file_(::open(path.c_str(), O_WRONLY | O_CLOEXEC)) {
        REQUIRE(::flock(file_, LOCK_EX | LOCK_NB) == 0);
    }
    ~Locked() { ::close(file_); }

private:
    int file_;
};

/// Makes `count` files of entries' names, not entries, in their shards: their paths.
std::vector<std::string> fill_folder(const std::string& folder, int count, const std::string& bytes) {
    std::vector<std::string> paths;
    for (int i = 0; i < count; ++i) {
        paths.push_back(path_of(folder, 1000 + i));
        std::filesystem::create_directories(std::filesystem::path(paths.back()).parent_path());
        write_file(paths.back(), bytes);
    }
    return paths;
}

/// The calls of a process's first publish in a folder of so many entries.
int calls_of_first_publish(int entries, std::int64_t max_bytes) {
    TemporaryFolder temporary;
    fill_folder(temporary.path(), entries, "x");
    CountingCalls calls;
    auto options = options_for(temporary.path());
    options.max_bytes = max_bytes;
    options.calls = &calls;
    open_disk_store(options)->publish(key_of(1), entry_of(1));
    return calls.calls;
}

}  // namespace

TEST_CASE("the folder never takes more than its size") {
    TemporaryFolder temporary;
    auto options = options_for(temporary.path());
    options.max_bytes = 20 * entry_bytes();
    const auto store = open_disk_store(options);
    for (int i = 10; i < 99; ++i) {
        store->publish(key_of(i), entry_of(i, kObjectBytes));
        CHECK(total_bytes(temporary.path()) <= options.max_bytes);
        CHECK(equal(store->find(key_of(i)), entry_of(i, kObjectBytes)));
    }
    CHECK(total_bytes(temporary.path()) >= options.max_bytes / 8 * 6);
}

TEST_CASE("the least recently used entries go, and a hit is a use") {
    TemporaryFolder temporary;
    auto options = options_for(temporary.path());
    {
        const auto store = open_disk_store(options);
        for (int i = 10; i < 20; ++i) {
            store->publish(key_of(i), entry_of(i, kObjectBytes));
            make_old(path_of(temporary.path(), i), 1000 - i);
        }
    }
    options.max_bytes = 10 * entry_bytes();
    const auto store = open_disk_store(options);
    CHECK(is_there(store->find(key_of(10))));
    CHECK(is_there(store->find(key_of(12))));
    store->publish(key_of(20), entry_of(20, kObjectBytes));
    for (int kept : {10, 12, 20, 19, 18, 17}) CHECK(std::filesystem::exists(path_of(temporary.path(), kept)));
    for (int gone : {11, 13}) CHECK_FALSE(std::filesystem::exists(path_of(temporary.path(), gone)));
}

TEST_CASE("an entry larger than the whole cache is not kept and drives nothing out") {
    TemporaryFolder temporary;
    auto options = options_for(temporary.path());
    options.max_bytes = 5000;
    const auto store = open_disk_store(options);
    store->publish(key_of(1), entry_of(1));
    store->publish(key_of(2), entry_of(2, 6000));
    CHECK(is_there(store->find(key_of(1))));
    CHECK(is_not_there(store->find(key_of(2))));
}

TEST_CASE("room is made once in an eighth of the folder's size, and readers look at nothing") {
    TemporaryFolder temporary;
    CountingCalls calls;
    auto options = options_for(temporary.path());
    options.max_bytes = 80 * entry_bytes();
    options.calls = &calls;
    const auto store = open_disk_store(options);
    CHECK(is_not_there(store->find(key_of(10))));
    CHECK(calls.lists == 0);
    int looks = 0;
    for (int i = 10; i < 50; ++i) {
        const int before = calls.lists;
        store->publish(key_of(i), entry_of(i, kObjectBytes));
        looks += calls.lists > before;
    }
    CHECK(looks >= 2);
    CHECK(looks <= 5);
}

TEST_CASE("a publish pays for no more of a large folder than of a small one, whether it must remove files or not") {
    for (const std::int64_t max_bytes : {std::int64_t{1} << 30, std::int64_t{2000}}) {
        CAPTURE(max_bytes);
        const int small = calls_of_first_publish(600, max_bytes);
        const int large = calls_of_first_publish(6'000, max_bytes);
        CHECK(large < 2 * small);
        CHECK(large < 2'000);
    }
}

TEST_CASE("shards that there are none of are not asked for one by one") {
    CHECK(calls_of_first_publish(0, 1'000'000) < 30);
    CHECK(calls_of_first_publish(10, 1'000'000) < 150);
}

TEST_CASE("a shard that holds more than it should is looked at in part") {
    TemporaryFolder temporary;
    const auto store = open_disk_store(options_for(temporary.path()));
    store->publish(key_of(1), entry_of(1));
    const std::string shard = shard_of(temporary.path(), 1);
    for (int i = 0; i < 2'500; ++i) {
        const std::string number = std::to_string(100'000 + i);
        write_file(shard + '/' + std::string(58, 'a') + number + ".kvjit", "x");
    }
    CountingCalls calls;
    auto options = options_for(temporary.path());
    options.calls = &calls;
    open_disk_store(options)->publish(key_of(1), entry_of(1));
    CHECK(calls.calls < 2'400);
}

TEST_CASE("processes that each publish once keep a folder of many files near its size, and what was used lately") {
    TemporaryFolder temporary;
    const std::vector<std::string> paths = fill_folder(temporary.path(), 4'000, std::string(1000, 'x'));
    for (std::size_t i = 0; i < paths.size(); ++i) {
        if (i % 4 != 0) make_old(paths[i], 100);
    }
    auto options = options_for(temporary.path());
    options.max_bytes = 2'000'000;
    for (int i = 0; i < 200; ++i) open_disk_store(options)->publish(key_of(i), entry_of(i));
    CHECK(total_bytes(temporary.path()) < options.max_bytes / 10 * 11);
    CHECK(total_bytes(temporary.path()) > options.max_bytes / 10 * 7);
    for (std::size_t i = 0; i < paths.size(); i += 4) CHECK(std::filesystem::exists(paths[i]));
}

TEST_CASE("what nobody holds is swept by the next publish, however young; what is in use stays") {
    TemporaryFolder temporary;
    const auto store = open_disk_store(options_for(temporary.path()));
    const auto guard = store->lock(key_of(1));
    const std::string entry = path_of(temporary.path(), 1), lock = lock_path(temporary.path(), key_of(1));
    for (const char* name : {".1.2.3.tmp", ".4.5.6.tmp"}) write_file(entry + name, "x");
    const Locked writer(entry + ".4.5.6.tmp");
    write_file(shard_of(temporary.path(), 1) + '/' + std::string(64, 'a') + ".lock", "");
    for (const std::string& path : files_in(temporary.path())) make_old(path, 7200);
    store->publish(key_of(1), entry_of(1));
    std::vector<std::string> left = files_in(temporary.path());
    std::ranges::sort(left);
    CHECK(left == std::vector{entry, entry + ".4.5.6.tmp", lock});
}

TEST_CASE("a writer killed in the middle leaves a file that the next process's publish sweeps") {
    struct LastCalls : UnsyncedCalls {
        int sync(int fd) override {
            struct stat file{};
            FileCalls::status(fd, &file);
            return S_ISREG(file.st_mode) ? ::kill(::getpid(), SIGKILL) : 0;
        }
    };
    TemporaryFolder temporary;
    for (int round = 0; round < 5; ++round) {
        const int number = round % 2;  // the same program's again, or another one's
        CHECK(in_child([&]() -> std::string {
                  LastCalls calls;
                  auto options = options_for(temporary.path());
                  options.calls = &calls;
                  open_disk_store(options)->publish(key_of(number), entry_of(number));
                  return "";
              }) == "killed by signal 9");
        CHECK(files_in(temporary.path(), ".tmp").size() == 1);
    }
    open_disk_store(options_for(temporary.path()))->publish(key_of(2), entry_of(2));
    CHECK(files_in(temporary.path()) == std::vector{path_of(temporary.path(), 2)});
}

TEST_CASE("files being written count in the folder's size") {
    TemporaryFolder temporary;
    auto options = options_for(temporary.path());
    options.max_bytes = 20 * entry_bytes();
    for (int i = 10; i < 25; ++i) open_disk_store(options)->publish(key_of(i), entry_of(i, kObjectBytes));
    const std::string unfinished = path_of(temporary.path(), 10) + ".1.2.3.tmp";
    write_file(unfinished, std::string(static_cast<std::size_t>(10 * entry_bytes()), 'x'));
    const Locked writer(unfinished);
    open_disk_store(options)->publish(key_of(25), entry_of(25, kObjectBytes));
    CHECK(total_bytes(temporary.path()) <= 10 * entry_bytes());
    CHECK(std::filesystem::exists(unfinished));
}

/// As if another process swept just before this writer's lock on its new file, and held that file or had removed it.
struct SweptCalls : UnsyncedCalls {
    std::string folder;
    bool removes = false;
    int sweeps = 0;
    int lock(int fd) override {
        if (sweeps == 2) return FileCalls::lock(fd);
        ++sweeps;
        const std::string unfinished = files_in(folder, ".tmp").at(0);
        const Locked sweeper(unfinished);
        if (removes) std::filesystem::remove(unfinished);
        const int result = FileCalls::lock(fd);
        if (!removes) std::filesystem::remove(unfinished);
        return removes ? 0 : result;
    }
};

TEST_CASE("a writer whose file is swept between its making and its lock takes another one") {
    for (const bool removes : {false, true}) {
        CAPTURE(removes);
        TemporaryFolder temporary;
        SweptCalls calls;
        calls.folder = temporary.path();
        calls.removes = removes;
        std::vector<std::string> messages;
        auto options = options_for(temporary.path(), &messages);
        options.calls = &calls;
        const auto store = open_disk_store(options);
        store->publish(key_of(1), entry_of(1));
        CHECK(calls.sweeps == 2);
        CHECK(equal(store->find(key_of(1)), entry_of(1)));
        CHECK(files_in(temporary.path()).size() == 1);
        CHECK(messages.empty());
    }
}

TEST_CASE("files that are not the cache's are left alone") {
    TemporaryFolder temporary;
    std::vector<std::string> names{"thesis.kvjit", "notes.tmp", "x.lock", std::string(64, 'z') + ".kvjit",
                                   std::string(64, 'a') + ".txt"};
    std::filesystem::create_directory(temporary.path("aa"));
    for (std::size_t i = 0; i < 5; ++i) names.push_back("aa/" + names[i]);
    for (const std::string& name : names) {
        write_file(temporary.path(name), std::string(2000, 'x'));
        make_old(temporary.path(name), 7200);
    }
    auto options = options_for(temporary.path());
    options.max_bytes = 1000;
    const auto store = open_disk_store(options);
    for (int i = 0; i < 9; ++i) store->publish(key_of(i), entry_of(i));
    for (const std::string& name : names) CHECK(std::filesystem::exists(temporary.path(name)));
}

TEST_CASE("processes that prune, publish and find at once never see a wrong entry") {
    TemporaryFolder temporary;
    std::vector<std::unique_ptr<Child>> children;
    for (int c = 0; c < 4; ++c) {
        children.push_back(std::make_unique<Child>([&, c]() -> std::string {
            std::vector<std::string> messages;
            auto options = options_for(temporary.path("cache"), &messages);
            options.max_bytes = 5 * entry_bytes();
            const auto store = open_disk_store(options);
            for (int i = 0; i < 150; ++i) {
                const int number = 10 + (i * (c + 1)) % 11;
                store->publish(key_of(number), entry_of(number, kObjectBytes));
                const DiskStore::Lookup found = store->find(key_of(10 + i % 11));
                if (is_there(found) && !equal(found, entry_of(10 + i % 11, kObjectBytes))) return "a wrong entry";
            }
            return messages.empty() ? "" : messages[0];
        }));
    }
    for (const auto& child : children) CHECK(child->wait() == "");
}
