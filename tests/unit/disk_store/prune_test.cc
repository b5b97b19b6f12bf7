// The folder keeps to its size, and what was used lately stays.
#include "disk_cache/prune.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

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
    return folder + '/' + entry_file_name(entry_digest(key_of(number)));
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

/// Lists as the real calls do, and counts.
struct CountingCalls : UnsyncedCalls {
    int lists = 0;
    std::expected<std::vector<std::string>, int> list(int folder) override {
        ++lists;
        return FileCalls::list(folder);
    }
};

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
    CHECK(store->find(key_of(10)));
    CHECK(store->find(key_of(12)));
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
    CHECK(store->find(key_of(1)));
    CHECK_FALSE(store->find(key_of(2)));
}

TEST_CASE("the folder is listed once in an eighth of its size, and not at all by readers") {
    TemporaryFolder temporary;
    CountingCalls calls;
    auto options = options_for(temporary.path());
    options.max_bytes = 80 * entry_bytes();
    options.calls = &calls;
    const auto store = open_disk_store(options);
    CHECK_FALSE(store->find(key_of(10)));
    CHECK(calls.lists == 0);
    for (int i = 10; i < 50; ++i) store->publish(key_of(i), entry_of(i, kObjectBytes));
    CHECK(calls.lists >= 2);
    CHECK(calls.lists <= 5);
}

TEST_CASE("what killed processes left is swept once it is old; what is young or in use stays") {
    TemporaryFolder temporary;
    const auto folder = [&](const std::string& name) { return temporary.path(std::string(64, 'a') + name); };
    for (const char* name : {".kvjit.1.2.3.tmp", ".kvjit.4.5.6.tmp", ".lock"}) write_file(folder(name), "x");
    make_old(folder(".kvjit.1.2.3.tmp"), 7200);
    make_old(folder(".lock"), 7200);
    const auto store = open_disk_store(options_for(temporary.path()));
    const auto guard = store->lock(key_of(2));
    const std::string in_use = files_in(temporary.path(), entry_digest(key_of(2)) + ".lock").at(0);
    make_old(in_use, 7200);
    store->publish(key_of(1), entry_of(1));
    CHECK_FALSE(std::filesystem::exists(folder(".kvjit.1.2.3.tmp")));
    CHECK_FALSE(std::filesystem::exists(folder(".lock")));
    CHECK(std::filesystem::exists(folder(".kvjit.4.5.6.tmp")));
    CHECK(std::filesystem::exists(in_use));
}

TEST_CASE("files that are not the cache's are left alone") {
    TemporaryFolder temporary;
    const std::vector<std::string> names{"thesis.kvjit", "notes.tmp", "x.lock", std::string(64, 'z') + ".kvjit",
                                         std::string(64, 'a') + ".txt"};
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
                const auto found = store->find(key_of(10 + i % 11));
                if (found && !equal(found, entry_of(10 + i % 11, kObjectBytes))) return "a wrong entry";
            }
            return messages.empty() ? "" : messages[0];
        }));
    }
    for (const auto& child : children) CHECK(child->wait() == "");
}
