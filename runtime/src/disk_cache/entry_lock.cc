#include "disk_cache/entry_lock.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <thread>

namespace kvjit::rt {
namespace {

using Clock = std::chrono::steady_clock;

/// A flock can't be waited for with a time limit, so it is tried repeatedly, at growing intervals.
class Patience {
public:
    explicit Patience(std::chrono::milliseconds wait) : end_(Clock::now() + wait) {}

    /// Sleeps a little; false once the time is up.
    bool pause() {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end_ - Clock::now());
        if (left.count() <= 0) return false;
        std::this_thread::sleep_for(std::min(left, step_));
        step_ = std::min(2 * step_, kLongest);
        return true;
    }

private:
    static constexpr std::chrono::milliseconds kLongest{16};
    Clock::time_point end_;
    std::chrono::milliseconds step_{1};
};

Fd open_lock_file(const CacheFolder& folder, const std::string& name) {
    return Fd(folder.calls().open(folder.descriptor(), name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600));
}

/// False for a lock on a file that its last holder has removed meanwhile: such a lock excludes no process.
bool still_named(const CacheFolder& folder, const std::string& name, const Fd& file) {
    struct stat mine{};
    struct stat named{};
    return folder.calls().status(file.get(), &mine) == 0 &&
           folder.calls().status_of(folder.descriptor(), name.c_str(), &named) == 0 && mine.st_ino == named.st_ino &&
           mine.st_dev == named.st_dev;
}

}  // namespace

EntryLock EntryLock::acquire(const CacheFolder& folder, std::string name, std::chrono::milliseconds wait) {
    Patience patience(wait);
    do {
        Fd file = open_lock_file(folder, name);
        if (!file.open()) break;
        const int locked = folder.calls().lock(file.get());
        if (locked == 0 && still_named(folder, name, file)) return {folder, std::move(name), std::move(file)};
        if (locked != 0 && locked != -EWOULDBLOCK) break;
    } while (patience.pause());
    return {folder, std::move(name), Fd()};
}

EntryLock::~EntryLock() {
    if (!held()) return;
    // Removed while still held, so that the next holder can't lock this file under its new name. A child process forked
    // meanwhile may hold the lock past the close: without its name it excludes no process.
    folder_->calls().remove(folder_->descriptor(), name_.c_str());
}

}  // namespace kvjit::rt
