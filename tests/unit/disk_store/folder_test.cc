// Which folder the cache uses, how it is made, and what happens where it can't be used.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "fixture.h"

using namespace kvjit::rt;
using namespace kvjit::rt::test;

namespace {

using Variables = std::vector<std::pair<const char*, const char*>>;

/// default_cache_place() with no variable but these.
std::string chosen_with(const Variables& variables) {
    return in_child([&] {
        for (const char* name : {"KVJIT_CACHE_DIR", "XDG_CACHE_HOME", "HOME"}) ::unsetenv(name);
        for (const auto& [name, value] : variables) ::setenv(name, value, 1);
        return default_cache_place().path;
    });
}

/// A store that keeps nothing, and says so `times` times however it is used.
std::string check_keeps_nothing(const std::string& folder, std::size_t times) {
    std::vector<std::string> messages;
    const auto store = open_disk_store(options_for(folder, &messages));
    for (int i = 0; i < 3; ++i) {
        const auto guard = store->lock(key_of(i));
        if (!guard || guard->held()) return "a lock without a folder";
        store->publish(key_of(i), entry_of(i));
        const DiskStore::Lookup answer = store->find(key_of(i));
        if (is_there(answer)) return "found";
        if (failure(answer).empty() != (times == 0)) return "no reason: " + failure(answer);
    }
    if (messages.size() != times) return std::to_string(messages.size()) + " messages";
    return store->folder();
}

}  // namespace

TEST_CASE("the folder comes from the environment") {
    CHECK(chosen_with({{"KVJIT_CACHE_DIR", "/a"}, {"XDG_CACHE_HOME", "/b"}, {"HOME", "/c"}}) == "/a");
    CHECK(chosen_with({{"XDG_CACHE_HOME", "/b"}, {"HOME", "/c"}}) == "/b/kvjit");
    CHECK(chosen_with({{"HOME", "/c"}}) == "/c/.cache/kvjit");
    CHECK(chosen_with({{"XDG_CACHE_HOME", "relative"}, {"HOME", "/c"}}) == "/c/.cache/kvjit");
    CHECK(chosen_with({{"XDG_CACHE_HOME", ""}, {"HOME", "/c"}}) == "/c/.cache/kvjit");
    CHECK(chosen_with({{"KVJIT_CACHE_DIR", ""}, {"HOME", "/c"}}) == "");
    CHECK(chosen_with({{"HOME", "relative"}}) == "");
    CHECK(chosen_with({}) == "");
}

TEST_CASE("an empty folder name means no folder, and nothing is said") {
    CHECK(check_keeps_nothing("", 0) == "");
}

TEST_CASE("folders are 0700 and files 0600 though the umask would allow more") {
    TemporaryFolder temporary;
    const mode_t before = ::umask(0);
    const auto store = open_disk_store(options_for(temporary.path("a/b/kvjit")));
    store->publish(key_of(1), entry_of(1));
    const auto guard = store->lock(key_of(1));
    ::umask(before);
    const auto files = files_in(store->folder());
    for (const char* made : {"a", "a/b", "a/b/kvjit"}) CHECK(mode_of(temporary.path(made)) == 0700);
    CHECK(mode_of(std::filesystem::path(files.at(0)).parent_path()) == 0700);
    CHECK(files.size() == 2);
    for (const std::string& file : files) CHECK(mode_of(file) == 0600);
}

TEST_CASE("a name that ends in a slash is the same folder") {
    TemporaryFolder temporary;
    open_disk_store(options_for(temporary.path("a/cache/")))->publish(key_of(1), entry_of(1));
    CHECK(equal(open_disk_store(options_for(temporary.path("a/cache")))->find(key_of(1)), entry_of(1)));
}

TEST_CASE("a folder that others may write to is not used") {
    for (mode_t mode : {0770, 0707, 01777}) {
        TemporaryFolder temporary;
        REQUIRE(::chmod(temporary.path().c_str(), mode) == 0);
        CHECK(check_keeps_nothing(temporary.path(), 1) == "");
        CHECK(files_in(temporary.path()).empty());
    }
}

TEST_CASE("another user's folder is not used, by root neither") {
    TemporaryFolder temporary;
    std::string foreign = "/usr";  // root's
    if (::geteuid() == 0) {
        foreign = temporary.path();
        REQUIRE(::chown(foreign.c_str(), 12345, 12345) == 0);
    }
    CHECK(check_keeps_nothing(foreign, 1) == "");
}

TEST_CASE("where no folder can be made, nothing is kept and one message says so") {
    TemporaryFolder temporary;
    write_file(temporary.path("file"), "");
    CHECK(check_keeps_nothing(temporary.path("file/cache"), 1) == "");
    CHECK(check_keeps_nothing(temporary.path("file"), 1) == "");
    CHECK(as_ordinary_user(temporary.path(), [&] {
              ::chmod(temporary.path().c_str(), 0500);
              return check_keeps_nothing(temporary.path("cache/kvjit"), 1);
          }) == "");
}

/// nullopt: it is not set.
void set_variable(const char* name, const std::optional<std::string>& value) {
    value ? ::setenv(name, value->c_str(), 1) : ::unsetenv(name);
}

/// Opens the store that the environment asks for, publishes, finds; what it said.
std::string use_with_home(const std::optional<std::string>& home,
                          const std::optional<std::string>& folder = std::nullopt) {
    return in_child([&]() -> std::string {
        set_variable("KVJIT_CACHE_DIR", folder);
        set_variable("XDG_CACHE_HOME", std::nullopt);
        set_variable("HOME", home);
        std::vector<std::string> messages;
        auto options = options_for("", &messages);
        options.folder.reset();
        const auto store = open_disk_store(options);
        store->publish(key_of(1), entry_of(1));
        const bool found = equal(store->find(key_of(1)), entry_of(1));
        return messages.empty() ? found ? "kept" : "not kept" : messages[0];
    });
}

TEST_CASE("without a home folder's name nothing is kept and one message says why; where nobody wants a cache, none") {
    const auto message = [](const std::string& why) {
        return "there is no disk cache, since " + why + "; programs are kept in memory only";
    };
    CHECK(use_with_home(std::nullopt) == message("HOME is not set"));
    CHECK(use_with_home("folder") == message("HOME is \"folder\", no absolute path"));
    CHECK(use_with_home(std::nullopt, "") == "not kept");
}

TEST_CASE("a home folder that isn't there is not made; what is missing in one is") {
    TemporaryFolder temporary;
    for (const char* name : {"nobody", "nobody/", "no/body"}) {
        const std::string home = temporary.path(name);
        CHECK(use_with_home(home) == "the cache folder " + home +
                                         "/.cache/kvjit can't be used: there is no home folder " + home +
                                         "; programs are kept in memory only");
        CHECK(std::filesystem::is_empty(temporary.path()));
    }
    CHECK(use_with_home(temporary.path()) == "kept");
    CHECK(mode_of(temporary.path(".cache/kvjit")) == 0700);
}

TEST_CASE("a shard that others may write to, or that is none, is not used; its programs are not kept") {
    const auto shard_of = [](const std::string& folder) {
        return std::filesystem::path(entry_path(folder, key_of(1))).parent_path().string();
    };
    TemporaryFolder open_to_all, linked, file;
    for (const TemporaryFolder* each : {&open_to_all, &linked, &file}) {
        if (each == &open_to_all) std::filesystem::create_directory(shard_of(each->path()));
        if (each == &open_to_all) REQUIRE(::chmod(shard_of(each->path()).c_str(), 0777) == 0);
        if (each == &linked) std::filesystem::create_directory_symlink("/tmp", shard_of(each->path()));
        if (each == &file) write_file(shard_of(each->path()), "");
        std::vector<std::string> messages;
        const auto store = open_disk_store(options_for(each->path(), &messages));
        CHECK(failure(store->find(key_of(1))).starts_with(shard_of(each->path()) + " can't be used: "));
        CHECK_FALSE(store->lock(key_of(1))->held());
        store->publish(key_of(1), entry_of(1));
        CHECK_FALSE(is_there(store->find(key_of(1))));
        CHECK(messages.size() == 3);
    }
}

TEST_CASE("a folder that can't be written still gives hits; that nothing is kept is said once") {
    TemporaryFolder temporary;
    CHECK(as_ordinary_user(temporary.path(), [&]() -> std::string {
              open_disk_store(options_for(temporary.path()))->publish(key_of(1), entry_of(1));
              make_unwritable(temporary.path());
              std::vector<std::string> messages;
              const auto store = open_disk_store(options_for(temporary.path(), &messages));
              if (!equal(store->find(key_of(1)), entry_of(1))) return "no hit";
              if (store->lock(key_of(1))->held()) return "a lock in a folder that can't be written";
              store->publish(key_of(2), entry_of(2));
              store->publish(key_of(3), entry_of(3));
              if (is_there(store->find(key_of(2)))) return "a hit on what can't have been kept";
              return messages.size() == 1 ? "" : std::to_string(messages.size()) + " messages";
          }) == "");
}

TEST_CASE("a limit on the size of files does not end the process") {
    TemporaryFolder temporary;
    CHECK(in_child([&]() -> std::string {
              const rlimit limit{1000, 1000};
              if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return "can't set the limit";
              std::vector<std::string> messages;
              const auto store = open_disk_store(options_for(temporary.path(), &messages));
              store->publish(key_of(1), entry_of(1, 2000));
              if (is_there(store->find(key_of(1))) || messages.size() != 1) return "kept, or not said";
              store->publish(key_of(1), entry_of(1, 100));
              return equal(store->find(key_of(1)), entry_of(1, 100)) ? "" : "no hit";
          }) == "");
}
