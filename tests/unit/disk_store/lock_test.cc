// One compile per key among threads and processes, and nobody waits for the dead.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <thread>

#include "fixture.h"

using namespace kvjit::rt;
using namespace kvjit::rt::test;

namespace {

/// What an engine does: look, lock, look again, compile, publish. Each compile leaves a byte in `compiles`.
void find_or_compile(DiskStore& store, const std::string& compiles) {
    if (is_there(store.find(key_of(1)))) return;
    const auto guard = store.lock(key_of(1));
    if (is_there(store.find(key_of(1)))) return;
    const int fd = ::open(compiles.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (::write(fd, "c", 1) != 1) ::_exit(1);
    ::close(fd);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    store.publish(key_of(1), entry_of(1));
}

/// Holds the lock of key 1 until it is killed; the parent goes on once it is held.
struct Holder {
    int ready[2];
    std::unique_ptr<Child> child;

    explicit Holder(const std::string& folder) {
        REQUIRE(::pipe2(ready, O_CLOEXEC) == 0);
        child = std::make_unique<Child>([this, folder]() -> std::string {
            const auto store = open_disk_store(options_for(folder));
            const auto guard = store->lock(key_of(1));
            if (::write(ready[1], guard->held() ? "y" : "n", 1) != 1) return "no parent";
            for (;;) ::pause();
        });
        char held = 0;
        REQUIRE(::read(ready[0], &held, 1) == 1);
        REQUIRE(held == 'y');
    }
    ~Holder() {
        ::close(ready[0]);
        ::close(ready[1]);
    }
};

/// Does something between a locker's opening of the lock's file and its locking it, the first time.
struct InterruptedCalls : UnsyncedCalls {
    std::function<void()> before_lock;
    int lock(int fd) override {
        if (before_lock) std::exchange(before_lock, nullptr)();
        return FileCalls::lock(fd);
    }
};

}  // namespace

TEST_CASE("many processes compile a key once") {
    TemporaryFolder temporary;
    std::vector<std::unique_ptr<Child>> children;
    for (int i = 0; i < 8; ++i) {
        children.push_back(std::make_unique<Child>([&]() -> std::string {
            const auto store = open_disk_store(options_for(temporary.path("cache")));
            find_or_compile(*store, temporary.path("compiles"));
            return equal(store->find(key_of(1)), entry_of(1)) ? "" : "no hit";
        }));
    }
    for (const auto& child : children) CHECK(child->wait() == "");
    CHECK(read_file(temporary.path("compiles")) == "c");
    CHECK(files_in(temporary.path("cache")).size() == 1);
}

TEST_CASE("many threads compile a key once, with the store's lock alone") {
    TemporaryFolder temporary;
    const auto store = open_disk_store(options_for(temporary.path("cache")));
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) threads.emplace_back([&] { find_or_compile(*store, temporary.path("compiles")); });
    threads.clear();
    CHECK(read_file(temporary.path("compiles")) == "c");
}

TEST_CASE("a lock is held until its guard goes, by one at a time, for one key only") {
    TemporaryFolder temporary;
    auto options = options_for(temporary.path());
    options.lock_wait = std::chrono::milliseconds(5);
    const auto store = open_disk_store(options);
    auto first = store->lock(key_of(1));
    CHECK(first->held());
    CHECK_FALSE(store->lock(key_of(1))->held());
    CHECK(store->lock(key_of(2))->held());
    first.reset();
    CHECK(store->lock(key_of(1))->held());
    CHECK(files_in(temporary.path()).empty());
}

TEST_CASE("the wait for another process is bounded, and its lock stops no reader and no writer") {
    TemporaryFolder temporary;
    Holder holder(temporary.path());
    auto options = options_for(temporary.path());
    options.lock_wait = std::chrono::milliseconds(20);
    const auto store = open_disk_store(options);
    CHECK_FALSE(store->lock(key_of(1))->held());
    store->publish(key_of(1), entry_of(1));
    CHECK(equal(store->find(key_of(1)), entry_of(1)));
}

TEST_CASE("a killed holder's lock is free, though its file is still there") {
    TemporaryFolder temporary;
    Holder holder(temporary.path());
    holder.child->kill();
    CHECK(holder.child->wait() == "killed by signal 9");
    CHECK(files_in(temporary.path(), ".lock").size() == 1);
    CHECK(open_disk_store(options_for(temporary.path()))->lock(key_of(1))->held());
    CHECK(files_in(temporary.path()).empty());
}

TEST_CASE("a child forked while a lock is held does not keep it") {
    TemporaryFolder temporary;
    auto options = options_for(temporary.path());
    options.lock_wait = std::chrono::milliseconds(20);
    const auto store = open_disk_store(options);
    auto guard = store->lock(key_of(1));
    const Child sleeper([]() -> std::string {
        for (;;) ::pause();
    });
    guard.reset();
    CHECK(store->lock(key_of(1))->held());
}

TEST_CASE("a lock's file that its holder removes just as it is being locked keeps nobody out") {
    TemporaryFolder temporary;
    InterruptedCalls calls;
    auto options = options_for(temporary.path());
    const auto others = open_disk_store(options);
    options.calls = &calls;
    options.lock_wait = std::chrono::milliseconds(20);
    const auto store = open_disk_store(options);
    auto first = others->lock(key_of(1));
    std::unique_ptr<Cache::Guard> second;
    calls.before_lock = [&] {
        first.reset();
        second = others->lock(key_of(1));
    };
    CHECK_FALSE(store->lock(key_of(1))->held());
    CHECK(second->held());
    second.reset();
    CHECK(store->lock(key_of(1))->held());
}
