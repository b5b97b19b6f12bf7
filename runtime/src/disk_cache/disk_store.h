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
    std::int64_t max_bytes = 512LL << 20;         // entries are pruned to this; a larger one is not kept at all
    std::chrono::milliseconds lock_wait{10'000};  // then lock() gives up, and the caller compiles privately
    Log log;                                      // may be empty; may be called on several threads at once
    FileCalls* calls = &system_calls();           // must outlive the store
};

/// Finds and keeps entries in a folder. Whatever goes wrong with the disk costs a hit, never a call:
///   no usable folder     nothing is kept and looking fails; the log says so once, when the store is opened
///   can't read           looking fails, the log says so; the entry stays
///   can't write          hits still work, nothing is kept; the log says so once
///   bad entry            removed, logged, a miss
///   can't remove it      its program is not kept while it is there; the log says so once
/// Thread-safe; any number of stores and processes may share a folder.
class DiskStore final : public Cache {
public:
    /// What the folder says to a key.
    struct Found {
        Entry entry;
        StoredEntry stored;
    };
    using Lookup = std::variant<Found, NotThere, Failed>;

    /// The error says why there is no folder; "": none is wanted.
    DiskStore(std::expected<CacheFolder, std::string> folder, const DiskStoreOptions& options);

    Answer find(std::span<Wanted> candidates) override;
    gen::Result<std::string> read(const std::string& identity, const StoredEntry& stored,
                                  EntryPart part) const override;
    void publish(Wanted& wanted, const Entry& entry) override;
    std::unique_ptr<Guard> lock(Wanted& wanted) override;

    /// The same for one key. Where it names no maker: any maker's entry, the first by name that is good; nothing is
    /// kept, and the guard holds nobody.
    Lookup find(const EntryKey& key);
    void publish(const EntryKey& key, const Entry& entry);
    std::unique_ptr<Guard> lock(const EntryKey& key);

    /// Where the entries are; "" if nowhere.
    std::string folder() const { return folder_ ? folder_->path() : ""; }

private:
    Lookup find_any(const CacheFolder& shard, const EntryKey& key);
    Lookup find_in(const CacheFolder& shard, const std::string& name, const EntryKey& key);
    NotThere reject(const CacheFolder& shard, const std::string& name, std::string_view why);
    Failed unreadable(const std::string& path, const ReadFailure& why) const;
    /// Notes that something that can't be removed has this name; false if that was known.
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
    /// What may yet be published before room must be made again. Beginning with none, the first publish looks at the
    /// folder, so that a process which only reads never does.
    std::atomic<std::int64_t> budget_bytes_{0};
    std::mutex pruning_;
    std::mutex naming_;
    std::set<std::string> in_the_way_;  // names of what can't be removed; guarded by naming_
};

/// Never fails and never returns null.
std::unique_ptr<DiskStore> open_disk_store(const DiskStoreOptions& options);

}  // namespace kvjit::rt
