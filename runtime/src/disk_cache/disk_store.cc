#include "disk_cache/disk_store.h"

#include <algorithm>
#include <cerrno>
#include <ranges>
#include <system_error>

#include "disk_cache/entry.h"
#include "disk_cache/entry_lock.h"
#include "disk_cache/prune.h"
#include "environment.h"
#include "generator/identity.h"

namespace kvjit::rt {
namespace {

// Limits of a search for any maker's entry: names of a shard to list, and entries to open.
constexpr std::size_t kMostNames = 65536;
constexpr std::size_t kMostMakers = 64;

constexpr const char* kInMemory = "; programs are kept in memory only";

std::string why_not_listed(int error) {
    return "can't be listed: " + std::generic_category().message(-error);
}

class DiskGuard final : public Cache::Guard {
public:
    DiskGuard(CacheFolder shard, std::string name, std::chrono::milliseconds wait)
        : shard_(std::move(shard)), lock_(EntryLock::acquire(shard_, std::move(name), wait)) {}
    bool held() const override { return lock_.held(); }

private:
    CacheFolder shard_;
    EntryLock lock_;
};

DiskStore::Found copy(const EntryView& view, const std::string& path) {
    DiskStore::Found found{{std::string(view.object), std::string(view.source), std::string(view.log)},
                           {path, {}, std::string(view.source_digest)}};
    std::ranges::copy(view.digest, found.stored.digest.begin());
    return found;
}

std::string part_of(const EntryView& view, EntryPart part) {
    switch (part) {
        case EntryPart::kProvenance:
            return gen::print_provenance(view.source_digest, view.maker);
        case EntryPart::kObject:
            return std::string(view.object);
        case EntryPart::kSource:
            return std::string(view.source);
        case EntryPart::kLog:
            break;
    }
    return std::string(view.log);
}

}  // namespace

DiskStore::DiskStore(std::expected<CacheFolder, std::string> folder, const DiskStoreOptions& options)
    : folder_(std::move(folder)), max_bytes_(options.max_bytes), lock_wait_(options.lock_wait), log_(options.log) {}

Answer DiskStore::find(std::span<Wanted> candidates) {
    if (!folder_ && folder_.error().empty()) return NotThere{};
    if (!folder_) return Failed{folder_.error()};
    Answer answer = NotThere{};  // the first failure, unless a later candidate is found
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        const gen::Result<EntryKey> key = candidates[i].key();
        if (!key) return Failed{"the disk cache, which goes by the source, can't be asked: " + key.error().message};
        Lookup found = find(*key);
        if (auto* hit = std::get_if<Found>(&found)) return Held{i, std::move(hit->entry), std::move(hit->stored)};
        auto* failed = std::get_if<Failed>(&found);
        if (failed && std::holds_alternative<NotThere>(answer)) answer = std::move(*failed);
    }
    return answer;
}

std::string DiskStore::near_miss(Wanted& wanted) const {
    const gen::Result<EntryKey> key = wanted.key();
    return key ? near_miss(*key) : key.error().message;
}

std::string DiskStore::near_miss(const EntryKey& key) const {
    if (!folder_) return folder_.error().empty() ? "there is no disk cache" : folder_.error();
    const std::string digest = entry_digest(key);
    const auto shard = folder_->subfolder(shard_name(digest));
    if (!shard) return "";
    const auto names = shard->calls().list(shard->descriptor(), kMostNames);
    if (!names) return "the disk cache " + why_not_listed(names.error());
    for (const std::string& name : *names) {
        if (!is_entry_of(name, digest)) continue;
        const auto bytes = shard->read(name, kMaxEntryBytes);
        const auto view = bytes ? decode_entry(*bytes) : std::unexpected<std::string_view>("");
        const bool is_same = view && view->identity == key.identity && view->source_digest == key.source;
        if (is_same) return "the disk cache has it by another compiler, " + std::string(view->maker);
    }
    return "";
}

gen::Result<std::string> DiskStore::read(const std::string&, const StoredEntry& stored, EntryPart part) const {
    const auto refuse = [&](const ReadFailure& why) {
        const bool is_gone = why.kind == ReadFailure::Kind::kAbsent;
        return gen::fail(is_gone ? KVJIT_NOT_FOUND : KVJIT_BAD_FILE, "cache_dir",
                         "the disk cache's entry " + stored.place + ' ' + (is_gone ? "is gone" : why.reason));
    };
    const auto bad = [&](const std::string& why) { return refuse({ReadFailure::Kind::kUntrusted, why}); };
    const std::string name = stored.place.substr(stored.place.rfind('/') + 1);
    const auto shard = folder_->subfolder(shard_name(name));
    if (!shard) return refuse(shard.error());
    const auto bytes = shard->read(name, kMaxEntryBytes);
    if (!bytes) return refuse(bytes.error());
    const auto view = decode_entry(*bytes);
    if (!view) return bad("is damaged: " + std::string(view.error()));
    if (view->digest != as_text(stored.digest)) return bad("is another one than was loaded");
    return part_of(*view, part);
}

void DiskStore::publish(Wanted& wanted, const Entry& entry) {
    if (!folder_) return;
    if (const gen::Result<EntryKey> key = wanted.key()) publish(*key, entry);
}

std::unique_ptr<Cache::Guard> DiskStore::lock(Wanted& wanted) {
    if (!folder_) return std::make_unique<Guard>();
    const gen::Result<EntryKey> key = wanted.key();
    return key ? lock(*key) : std::make_unique<Guard>();
}

DiskStore::Lookup DiskStore::find(const EntryKey& key) {
    if (!folder_ && folder_.error().empty()) return NotThere{};
    if (!folder_) return Failed{folder_.error()};
    const std::string digest = entry_digest(key);
    const auto shard = folder_->subfolder(shard_name(digest));
    if (shard && !key.maker) return find_any(*shard, key);
    if (shard) return find_in(*shard, entry_file_name(entry_name(key, *key.maker)), key);
    if (shard.error().kind == ReadFailure::Kind::kAbsent) return NotThere{};
    return unreadable(folder_->path() + '/' + shard_name(digest), shard.error());
}

/// In sorted order, so that every process takes the same entry, and all programs of a kernel come from one maker if one
/// made them all.
DiskStore::Lookup DiskStore::find_any(const CacheFolder& shard, const EntryKey& key) {
    auto names = shard.calls().list(shard.descriptor(), kMostNames);
    if (!names) return unreadable(shard.path(), {ReadFailure::Kind::kUnreadable, why_not_listed(names.error())});
    const std::string digest = entry_digest(key);
    std::erase_if(*names, [&](const std::string& name) { return !is_entry_of(name, digest); });
    std::ranges::sort(*names);
    Lookup answer = NotThere{};
    for (const std::string& name : *names | std::views::take(kMostMakers)) {
        Lookup found = find_in(shard, name, key);
        if (std::holds_alternative<Found>(found)) return found;
        if (std::holds_alternative<Failed>(found)) answer = std::move(found);
    }
    return answer;
}

DiskStore::Lookup DiskStore::find_in(const CacheFolder& shard, const std::string& name, const EntryKey& key) {
    const auto bytes = shard.read(name, kMaxEntryBytes);
    if (!bytes) {
        switch (bytes.error().kind) {
            case ReadFailure::Kind::kAbsent:
                return NotThere{};
            case ReadFailure::Kind::kUnreadable:
                return unreadable(shard.path() + '/' + name, bytes.error());
            case ReadFailure::Kind::kUntrusted:
                return reject(shard, name, bytes.error().reason);
        }
    }
    const auto view = decode_entry(*bytes);
    if (view && holds_key(*view, key)) {
        shard.touch(name);
        return copy(*view, shard.path() + '/' + name);
    }
    return reject(shard, name, view ? "holds another program's entry" : "is damaged: " + std::string(view.error()));
}

void DiskStore::publish(const EntryKey& key, const Entry& entry) {
    if (!folder_ || !key.maker) return;
    const std::string bytes = encode_entry(key, entry);
    const auto size = static_cast<std::int64_t>(bytes.size());
    if (size > max_bytes_ || bytes.size() > kMaxEntryBytes) return;
    const std::string name = entry_file_name(entry_name(key, *key.maker));
    const auto shard = folder_->make_subfolder(shard_name(name));
    if (!shard) return warn_once("compiled programs are not kept: " + shard.error());
    make_room_for(size, shard_name(name));
    const auto written = shard->write(name, bytes);
    if (written) return forget_in_the_way(name);
    if (!is_in_the_way(name)) warn_once("compiled programs are not kept: " + written.error());
}

std::unique_ptr<Cache::Guard> DiskStore::lock(const EntryKey& key) {
    if (!folder_ || !key.maker) return std::make_unique<Guard>();
    const std::string name = entry_name(key, *key.maker);
    auto shard = folder_->make_subfolder(shard_name(name));
    if (!shard) return std::make_unique<Guard>();
    return std::make_unique<DiskGuard>(std::move(*shard), lock_file_name(name), lock_wait_);
}

NotThere DiskStore::reject(const CacheFolder& shard, const std::string& name, std::string_view why) {
    const std::string found = shard.path() + '/' + name + ' ' + std::string(why);
    const int error = shard.remove(name);
    if (error == -ENOENT) return {};  // another process has removed it, and logged that
    if (error == 0) {
        warn("removed from the cache: " + found);
    } else if (is_new_in_the_way(name)) {
        const std::string reason = std::generic_category().message(-error);
        warn("can't be removed from the cache: " + found + " (" + reason + "); its program is not kept");
    }
    return {};
}

Failed DiskStore::unreadable(const std::string& path, const ReadFailure& why) const {
    warn(path + ' ' + why.reason);
    return {path + ' ' + why.reason};
}

bool DiskStore::is_new_in_the_way(const std::string& name) {
    const std::scoped_lock alone(naming_);
    return in_the_way_.insert(name).second;
}

void DiskStore::forget_in_the_way(const std::string& name) {
    const std::scoped_lock alone(naming_);
    in_the_way_.erase(name);
}

bool DiskStore::is_in_the_way(const std::string& name) {
    const std::scoped_lock alone(naming_);
    return in_the_way_.contains(name);
}

void DiskStore::warn(const std::string& message) const {
    log_(KVJIT_LOG_WARNING, message);
}

void DiskStore::warn_once(const std::string& message) {
    if (!said_unwritable_.exchange(true)) warn(message);
}

void DiskStore::make_room_for(std::int64_t bytes, const std::string& shard) {
    const std::scoped_lock alone(pruning_);
    if (budget_bytes_ < bytes) budget_bytes_ = make_room(*folder_, shard, bytes, max_bytes_);
    budget_bytes_ -= bytes;
}

std::unique_ptr<DiskStore> open_disk_store(const DiskStoreOptions& options) {
    const CachePlace place = options.folder ? CachePlace{*options.folder, ""} : default_cache_place();
    if (place.path.empty()) {
        const bool is_wanted = !options.folder && !environment_text(Variable::kCacheDir);
        if (is_wanted)
            options.log(KVJIT_LOG_WARNING, "there is no disk cache, since " + why_no_cache_place() + kInMemory);
        return std::make_unique<DiskStore>(std::unexpected(std::string()), options);
    }
    auto folder = CacheFolder::open(*options.calls, place);
    if (!folder) options.log(KVJIT_LOG_WARNING, folder.error() + kInMemory);
    return std::make_unique<DiskStore>(std::move(folder), options);
}

}  // namespace kvjit::rt
