// The disk cache: a folder of entries that processes of one user share. docs/cache_format.md describes it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "disk_cache/cache_folder.h"
#include "images/store.h"
#include "log.h"

namespace kvjit::rt {

struct DiskStoreOptions {
    std::optional<std::string> folder;            // nothing: default_cache_place(); "": none
    std::int64_t max_bytes = 0;                   // entries are pruned to this; a larger entry is not stored
    std::chrono::milliseconds lock_wait{10'000};  // then lock() gives up, and the caller compiles privately
    Log log = {};                                 // may be called on several threads at once
    FileCalls* calls = &system_calls();           // must outlive the store
};

/// Finds and stores entries in a folder. A failing disk costs hits, never calls:
///   no usable folder     nothing is stored and lookups fail; logged once, when the store is opened
///   can't read           the lookup fails, logged; the entry stays
///   can't write          hits still work, nothing is stored; logged once
///   bad entry            removed, logged, a miss
///   can't remove it      its program is not stored while it is there; logged once
/// Thread-safe; any number of stores and processes may share a folder.
class DiskStore final : public Cache {
public:
    /// The folder's answer for a key.
    struct Found {
        Entry entry;
        StoredEntry stored;
    };
    using Lookup = std::variant<Found, NotThere, Failed>;

    /// The error says why there is no folder; "" if none is wanted.
    DiskStore(std::expected<CacheFolder, std::string> folder, const DiskStoreOptions& options);

    Answer find(std::span<Wanted> candidates) override;
    /// Says which compiler has made it, where another one has; or why the cache can't tell.
    std::string near_miss(Wanted& wanted) const override;
    gen::Result<std::string> read(const std::string& identity, const StoredEntry& stored,
                                  EntryPart part) const override;
    void publish(Wanted& wanted, const Entry& entry) override;
    std::unique_ptr<Guard> lock(Wanted& wanted) override;

    /// The same for one key. If the key has no maker: any maker's entry, the first good one by name; nothing is stored,
    /// and the guard locks nothing.
    Lookup find(const EntryKey& key);
    std::string near_miss(const EntryKey& key) const;
    void publish(const EntryKey& key, const Entry& entry);
    std::unique_ptr<Guard> lock(const EntryKey& key);

    /// The folder of the entries; "" if there is none.
    std::string folder() const { return folder_ ? folder_->path() : ""; }

private:
    Lookup find_any(const CacheFolder& shard, const EntryKey& key);
    Lookup find_in(const CacheFolder& shard, const std::string& name, const EntryKey& key);
    NotThere reject(const CacheFolder& shard, const std::string& name, std::string_view why);
    Failed unreadable(const std::string& path, const ReadFailure& why) const;
    /// Records the name of a file that can't be removed; false if it was recorded before.
    bool is_new_in_the_way(const std::string& name);
    void forget_in_the_way(const std::string& name);
    bool is_in_the_way(const std::string& name);
    void warn(const std::string& message) const;
    void warn_once(const std::string& message);
    void make_room_for(std::int64_t bytes, const std::string& shard);

    std::expected<CacheFolder, std::string> folder_;
    std::int64_t max_bytes_;
    std::chrono::milliseconds lock_wait_;
    Log log_;
    std::atomic<bool> said_unwritable_{false};
    std::mutex pruning_;
    /// Bytes that may be published before room must be made again. It begins at 0: the first publish examines the
    /// folder, so that a process which only reads never does. Guarded by pruning_.
    std::int64_t budget_bytes_ = 0;
    std::mutex naming_;
    std::set<std::string> in_the_way_;  // names of what can't be removed; guarded by naming_
};

/// Never fails and never returns null.
std::unique_ptr<DiskStore> open_disk_store(const DiskStoreOptions& options);

}  // namespace kvjit::rt
