// The disk cache's folder as people manage it. Nothing here marks an entry as used, makes a folder, or touches a file
// that is not kvjit's.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "disk_cache/cache_folder.h"
#include "disk_cache/prune.h"
#include "result.h"

namespace kvjit::tool {

struct CacheFile {
    std::string shard, name;
    rt::CacheFileKind kind;
    std::int64_t bytes;
    std::time_t used;  // last hit, or publish

    std::string path() const { return shard + "/" + name; }
};

/// What an entry holds. `bad`: why it is none, a clause; "" and the rest is set.
struct CacheEntry {
    std::string bad = "";
    std::string identity = "", image = "", program = "", variant = "", target = "", constants = "", maker = "";
    std::int64_t object_bytes = 0;
};

class ManagedCache {
public:
    /// `folder`: nothing is the library's default. Errors: no cache is wanted, or the folder can't be used.
    static Result<ManagedCache> open(const std::optional<std::string>& folder);

    const std::string& path() const { return path_; }
    /// False: there is no such folder yet.
    bool exists() const { return folder_.has_value(); }
    /// The cache's own files, the most recently used first.
    const std::vector<CacheFile>& files() const { return files_; }
    /// Files and folders that are not kvjit's, which stay.
    std::size_t strangers() const { return strangers_; }

    /// Reads an entry and checks its digest and its name.
    CacheEntry read(const CacheFile& file) const;
    /// Removes an entry, or a temporary or lock file that no process holds; false where it stays.
    bool remove(const CacheFile& file) const;
    /// Removes the shards that are empty.
    void remove_empty_shards() const;

private:
    explicit ManagedCache(std::string path) : path_(std::move(path)) {}
    void list();
    void list_shard(const std::string& shard);

    std::string path_;
    std::optional<rt::CacheFolder> folder_;
    std::vector<CacheFile> files_;
    std::vector<std::string> shards_;
    std::size_t strangers_ = 0;
};

/// The folder that the library would use; "": none is wanted.
std::string cache_path(const std::optional<std::string>& folder);

/// "3 days", "2 hours", "5 s"
std::string age_text(std::int64_t seconds);

}  // namespace kvjit::tool
