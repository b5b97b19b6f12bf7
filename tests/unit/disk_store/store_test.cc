// Finding and keeping entries, and what a bad one leads to.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <thread>

#include "disk_cache/entry.h"
#include "fixture.h"

using namespace kvjit::rt;
using namespace kvjit::rt::test;

namespace {

/// A folder with one published entry, and a log.
struct Published {
    TemporaryFolder temporary;
    std::string folder = temporary.path("cache");
    std::vector<std::string> messages;
    std::unique_ptr<DiskStore> store = open_disk_store(options_for(folder, &messages));
    std::string path;

    Published() {
        store->publish(key_of(1), entry_of(1));
        path = only_entry(folder);
    }

    /// A miss, said once and why, and the file gone.
    void check_removed(const std::string& why) {
        CHECK(is_not_there(store->find(key_of(1))));
        REQUIRE(messages.size() == 1);
        CHECK_MESSAGE(messages[0].find(why) != std::string::npos, messages[0]);
        struct stat status{};
        CHECK(::lstat(path.c_str(), &status) != 0);
        CHECK(is_not_there(store->find(key_of(1))));
        CHECK(messages.size() == 1);
    }
};

}  // namespace

TEST_CASE("the parts of an entry that was handed out are read again, as they are in it") {
    const Published published;
    const DiskStore::Lookup lookup = published.store->find(key_of(1));
    const StoredEntry stored = std::get<DiskStore::Found>(lookup).stored;
    CHECK(stored.place == published.path);
    CHECK(stored.source == key_of(1).source);
    const std::pair<EntryPart, std::string> parts[] = {
        {EntryPart::kProvenance, "source=" + key_of(1).source + ";" + *key_of(1).maker},
        {EntryPart::kObject, entry_of(1).object},
        {EntryPart::kSource, entry_of(1).source},
        {EntryPart::kLog, entry_of(1).log}};
    for (const auto& [part, bytes] : parts) CHECK(*published.store->read(key_of(1).identity, stored, part) == bytes);
}

TEST_CASE("of an entry that is gone, damaged or another one nothing is read again, nor is it touched") {
    Published published;
    const DiskStore::Lookup lookup = published.store->find(key_of(1));
    const StoredEntry stored = std::get<DiskStore::Found>(lookup).stored;
    const auto refusal = [&] { return published.store->read(key_of(1).identity, stored, EntryPart::kLog).error(); };
    published.store->publish(key_of(1), entry_of(2));  // the same key, by a maker whose objects differ
    CHECK(refusal().status == KVJIT_BAD_FILE);
    CHECK(refusal().message == "the disk cache's entry " + published.path + " is another one than was loaded");
    CHECK(equal(published.store->find(key_of(1)), entry_of(2)));
    write_file(published.path, "damaged");
    CHECK(refusal().status == KVJIT_BAD_FILE);
    CHECK(refusal().message == "the disk cache's entry " + published.path + " is damaged: cut short");
    CHECK(std::filesystem::remove(published.path));
    CHECK(refusal().status == KVJIT_NOT_FOUND);
    CHECK(refusal().message == "the disk cache's entry " + published.path + " is gone");
    std::filesystem::remove_all(published.folder);
    CHECK(refusal().status == KVJIT_NOT_FOUND);
    CHECK(published.messages.empty());
}

TEST_CASE("what is published is found, by every store of the folder and under its own key only") {
    TemporaryFolder temporary;
    std::vector<std::string> messages;
    const auto options = options_for(temporary.path("cache"), &messages);
    const auto store = open_disk_store(options);
    CHECK(store->folder() == temporary.path("cache"));
    CHECK(is_not_there(store->find(key_of(1))));
    store->publish(key_of(1), entry_of(1));
    CHECK(equal(store->find(key_of(1)), entry_of(1)));
    CHECK(equal(open_disk_store(options)->find(key_of(1)), entry_of(1)));
    CHECK(is_not_there(store->find(key_of(2))));
    CHECK(is_not_there(store->find({key_of(1).identity, "other source", *key_of(1).maker})));
    CHECK(is_not_there(store->find(made_by(key_of(1), "other maker"))));
    CHECK(files_in(store->folder()).size() == 1);
    CHECK(messages.empty());
}

TEST_CASE("an entry of another compiler is told, one of another source is not") {
    const Published published;
    const EntryKey mine = made_by(key_of(1), "compiler B");
    const auto long_ago = std::filesystem::last_write_time(published.path) - std::chrono::hours(1000);
    std::filesystem::last_write_time(published.path, long_ago);
    CHECK(published.store->near_miss(mine) == "the disk cache has it by another compiler, " + *key_of(1).maker);
    CHECK(std::filesystem::last_write_time(published.path) == long_ago);  // that was no use
    CHECK(published.store->near_miss(key_of(2)) == "");
    write_file(published.path, "not an entry");
    CHECK(published.store->near_miss(mine) == "");
    CHECK(published.messages.empty());
    CHECK(open_disk_store({.folder = ""})->near_miss(mine) == "there is no disk cache");
}

TEST_CASE("the last entry published under a key is the one found; empty and large ones are entries too") {
    TemporaryFolder temporary;
    const auto store = open_disk_store(options_for(temporary.path()));
    for (const Entry& entry : {entry_of(1), Entry{}, entry_of(2, 5'000'000)}) {
        store->publish(key_of(1), entry);
        CHECK(equal(store->find(key_of(1)), entry));
    }
}

TEST_CASE("who can't name a maker finds any maker's entry of the same source, and no other") {
    TemporaryFolder temporary;
    std::vector<std::string> messages;
    const auto store = open_disk_store(options_for(temporary.path("cache"), &messages));
    const EntryKey key = made_by_anyone(key_of(1));
    CHECK(is_not_there(store->find(key)));
    store->publish(key_of(1), entry_of(1));
    CHECK(equal(store->find(key), entry_of(1)));
    CHECK(is_not_there(store->find(made_by_anyone(key_of(2)))));
    CHECK(is_not_there(store->find(made_by_anyone({key_of(1).identity, "other source", ""}))));
    CHECK(messages.empty());
}

TEST_CASE("of several makers' entries the first by name that is good is found, by every process the same one") {
    TemporaryFolder temporary;
    std::vector<std::string> messages;
    const auto store = open_disk_store(options_for(temporary.path("cache"), &messages));
    std::map<std::string, int> numbers;  // by path
    for (int maker = 0; maker < 5; ++maker) {
        const EntryKey key = made_by(key_of(1), "maker " + std::to_string(maker));
        store->publish(key, entry_of(maker));
        numbers[entry_path(store->folder(), key)] = maker;
    }
    for (const auto& [path, maker] : numbers) {
        CHECK(equal(store->find(made_by_anyone(key_of(1))), entry_of(maker)));
        write_file(path, "damaged");
    }
    CHECK(is_not_there(store->find(made_by_anyone(key_of(1)))));
    CHECK(messages.size() == 5);
    CHECK(files_in(store->folder()).empty());
}

TEST_CASE("without a maker, another program's entry under such a name is no hit") {
    Published published;
    write_file(published.path, encode_entry(key_of(2), entry_of(2)));
    CHECK(is_not_there(published.store->find(made_by_anyone(key_of(1)))));
    CHECK_FALSE(std::filesystem::exists(published.path));
}

TEST_CASE("what has no maker is neither kept nor locked") {
    TemporaryFolder temporary;
    const auto store = open_disk_store(options_for(temporary.path()));
    store->publish(made_by_anyone(key_of(1)), entry_of(1));
    CHECK_FALSE(store->lock(made_by_anyone(key_of(1)))->held());
    CHECK(files_in(temporary.path()).empty());
}

TEST_CASE("a hit is what the file says: an entry exchanged for another good one of the same key shows") {
    Published published;
    Entry planted = entry_of(1);
    planted.object = "planted";
    write_file(published.path, encode_entry(key_of(1), planted));
    CHECK(equal(published.store->find(key_of(1)), planted));
}

TEST_CASE("a byte changed in any part of the file makes a miss, and the file goes") {
    const std::size_t size = encode_entry(key_of(1), entry_of(1)).size();
    for (std::size_t at = 0; at < size; at += at < kEntryHeaderBytes ? 1 : 13) {
        CAPTURE(at);
        Published published;
        std::string bytes = read_file(published.path);
        bytes[at] = static_cast<char>(bytes[at] + 1);
        write_file(published.path, bytes);
        published.check_removed("damaged");
        published.store->publish(key_of(1), entry_of(1));
        CHECK(equal(published.store->find(key_of(1)), entry_of(1)));
    }
}

TEST_CASE("a file cut at any length makes a miss, and the file goes") {
    TemporaryFolder temporary;
    const auto store = open_disk_store(options_for(temporary.path()));
    const Entry small{"object", "source", "log"};
    store->publish(key_of(1), small);
    const std::string path = only_entry(temporary.path());
    const std::string good = read_file(path);
    for (std::size_t length = 0; length < good.size(); ++length) {
        CAPTURE(length);
        write_file(path, good.substr(0, length));
        CHECK(is_not_there(store->find(key_of(1))));
        CHECK_FALSE(std::filesystem::exists(path));
    }
    write_file(path, good);
    CHECK(equal(store->find(key_of(1)), small));
}

TEST_CASE("another key's good entry under this key's name is no hit") {
    Published published;
    write_file(published.path, encode_entry(key_of(2), entry_of(2)));
    published.check_removed("another program");
}

TEST_CASE("a link is not followed, though what it points to is good") {
    Published published;
    const std::string elsewhere = published.temporary.path("elsewhere");
    std::filesystem::rename(published.path, elsewhere);
    std::filesystem::create_symlink(elsewhere, published.path);
    published.check_removed("symbolic link");
    CHECK(std::filesystem::exists(elsewhere));
}

TEST_CASE("a file that others may write to is refused") {
    for (mode_t mode : {0620, 0602, 0666}) {
        Published published;
        REQUIRE(::chmod(published.path.c_str(), mode) == 0);
        published.check_removed("written by other users");
    }
}

TEST_CASE("another user's file is refused") {
    if (::geteuid() != 0) {
        MESSAGE("skipped: only root can give a file to another user");
        return;
    }
    Published published;
    REQUIRE(::chown(published.path.c_str(), 12345, 12345) == 0);
    published.check_removed("belongs to another user");
}

TEST_CASE("a pipe is refused without waiting for its writer") {
    Published published;
    std::filesystem::remove(published.path);
    REQUIRE(::mkfifo(published.path.c_str(), 0600) == 0);
    published.check_removed("not a regular file");
}

TEST_CASE("a file too large for an entry is refused unread") {
    Published published;
    REQUIRE(::truncate(published.path.c_str(), static_cast<off_t>(kMaxEntryBytes) + 1) == 0);
    published.check_removed("too large");
}

TEST_CASE("an empty folder where the entry should be is removed, and the program is kept again") {
    Published published;
    std::filesystem::remove(published.path);
    std::filesystem::create_directory(published.path);
    published.check_removed("removed from the cache: " + published.path + " is not a regular file");
    published.store->publish(key_of(1), entry_of(1));
    CHECK(equal(published.store->find(key_of(1)), entry_of(1)));
}

TEST_CASE("a folder with something in it, where the entry should be, stays; one message says so and why") {
    Published published;
    std::filesystem::remove(published.path);
    std::filesystem::create_directory(published.path);
    write_file(published.path + "/thesis", "x");
    for (int times = 0; times < 3; ++times) {
        CHECK(is_not_there(published.store->find(key_of(1))));
        published.store->publish(key_of(1), entry_of(1));
    }
    CHECK(read_file(published.path + "/thesis") == "x");
    CHECK(files_in(published.folder) == std::vector{published.path + "/thesis"});
    REQUIRE(published.messages.size() == 1);
    CHECK(published.messages[0] == "can't be removed from the cache: " + published.path +
                                       " is not a regular file (Directory not empty); its program is not kept");
    published.store->publish(key_of(2), entry_of(2));
    CHECK(equal(published.store->find(key_of(2)), entry_of(2)));
    std::filesystem::remove_all(published.path);
    published.store->publish(key_of(1), entry_of(1));
    CHECK(equal(published.store->find(key_of(1)), entry_of(1)));
    CHECK(published.messages.size() == 1);
}

TEST_CASE("a bad entry in a folder that can't be written is said once to stay") {
    TemporaryFolder temporary;
    CHECK(as_ordinary_user(temporary.path(), [&]() -> std::string {
              open_disk_store(options_for(temporary.path()))->publish(key_of(1), entry_of(1));
              const std::string path = files_in(temporary.path(), ".kvjit").at(0);
              write_file(path, "short");
              make_unwritable(temporary.path());
              std::vector<std::string> messages;
              const auto store = open_disk_store(options_for(temporary.path(), &messages));
              if (is_there(store->find(key_of(1))) || is_there(store->find(key_of(1)))) return "a hit";
              store->publish(key_of(1), entry_of(1));
              if (messages.size() != 1) return std::to_string(messages.size()) + " messages";
              const bool says_why = messages[0].find("Permission denied") != std::string::npos;
              return says_why && messages[0].starts_with("can't be removed") ? "" : messages[0];
          }) == "");
}

TEST_CASE("the folder removed under an open store fails nothing") {
    Published published;
    std::filesystem::remove_all(published.folder);
    CHECK(is_not_there(published.store->find(key_of(1))));
    published.store->publish(key_of(1), entry_of(1));
    published.store->publish(key_of(2), entry_of(2));
    CHECK_FALSE(published.store->lock(key_of(1))->held());
    CHECK(published.messages.size() == 1);
}

TEST_CASE("threads that publish and find the same keys see whole entries or none") {
    TemporaryFolder temporary;
    auto options = options_for(temporary.path());
    options.max_bytes = 4000;  // so that they prune each other's too
    const auto store = open_disk_store(options);
    std::atomic<int> wrong = 0;
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < 60; ++i) {
                const int number = (i + t) % 7;
                store->publish(key_of(number), entry_of(number));
                const DiskStore::Lookup found = store->find(key_of(number));
                if (is_there(found) && !equal(found, entry_of(number))) ++wrong;
            }
        });
    }
    threads.clear();
    CHECK(wrong == 0);
    CHECK(files_in(temporary.path(), ".tmp").empty());
}
