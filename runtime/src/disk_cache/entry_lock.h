// A lock on a name, among threads and processes, that is released when its holder dies.
#pragma once

#include <chrono>
#include <string>

#include "disk_cache/cache_folder.h"

namespace kvjit::rt {

/// Held from acquire to destruction: an flock on a file beside the entries. The file's mere existence means nothing, so
/// a killed holder blocks no process. Readers ignore it. Owned by one thread at a time; `folder` must outlive it.
class EntryLock {
public:
    /// Waits up to `wait` for other holders, threads of this process included. After that, or if the folder can't have
    /// locks, the result is a lock that is not held: never an error.
    static EntryLock acquire(const CacheFolder& folder, std::string name, std::chrono::milliseconds wait);

    EntryLock(EntryLock&&) noexcept = default;
    EntryLock& operator=(EntryLock&&) = delete;
    /// Releases the lock and removes its file.
    ~EntryLock();

    bool held() const { return file_.open(); }

private:
    EntryLock(const CacheFolder& folder, std::string name, Fd file)
        : folder_(&folder), name_(std::move(name)), file_(std::move(file)) {}

    const CacheFolder* folder_;
    std::string name_;
    Fd file_;
};

}  // namespace kvjit::rt
