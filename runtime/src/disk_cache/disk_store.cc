#include "disk_cache/disk_store.h"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "disk_cache/entry.h"
#include "disk_cache/entry_lock.h"
#include "disk_cache/prune.h"

namespace kvjit::rt {
namespace {

class DiskGuard final : public Store::Guard {
public:
    explicit DiskGuard(EntryLock lock) : lock_(std::move(lock)) {}
    bool held() const override { return lock_.held(); }

private:
    EntryLock lock_;
};

Entry copy(const EntryView& view) {
    return {std::string(view.object), std::string(view.source), std::string(view.log)};
}

}  // namespace

DiskStore::DiskStore(std::optional<CacheFolder> folder, const DiskStoreOptions& options)
    : folder_(std::move(folder)), max_bytes_(options.max_bytes), lock_wait_(options.lock_wait), log_(options.log) {}

std::optional<Entry> DiskStore::find(const EntryKey& key) {
    if (!folder_) return std::nullopt;
    const std::string name = entry_file_name(entry_digest(key));
    const auto bytes = folder_->read(name, kMaxEntryBytes);
    if (!bytes) {
        if (bytes.error().kind == ReadFailure::Kind::kUntrusted) reject(name, bytes.error().reason);
        if (bytes.error().kind == ReadFailure::Kind::kUnreadable) warn(name + ' ' + bytes.error().reason);
        return std::nullopt;
    }
    const auto view = decode_entry(*bytes);
    if (view && holds_key(*view, key)) return copy(*view);
    reject(name, view ? "holds another program's entry" : "is damaged: " + std::string(view.error()));
    return std::nullopt;
}

void DiskStore::publish(const EntryKey& key, const Entry& entry) {
    if (!folder_) return;
    const std::string bytes = encode_entry(key, entry);
    const auto size = static_cast<std::int64_t>(bytes.size());
    if (size > max_bytes_ || bytes.size() > kMaxEntryBytes) return;
    const std::string name = entry_file_name(entry_digest(key));
    const auto written = folder_->write(name, bytes);
    if (written) {
        forget_in_the_way(name);
        return account(size);
    }
    if (!is_in_the_way(name)) warn_once("compiled programs are not kept: " + written.error());
}

std::unique_ptr<Store::Guard> DiskStore::lock(const EntryKey& key) {
    if (!folder_) return std::make_unique<Guard>();
    return std::make_unique<DiskGuard>(EntryLock::acquire(*folder_, lock_file_name(entry_digest(key)), lock_wait_));
}

void DiskStore::reject(const std::string& name, std::string_view why) {
    const std::string found = folder_->path() + '/' + name + ' ' + std::string(why);
    const int error = folder_->remove(name);
    if (error == 0) return warn("removed from the cache: " + found);
    if (error == -ENOENT) return;  // another process has removed it, and said so
    if (!is_new_in_the_way(name)) return;
    const std::string reason = std::generic_category().message(-error);
    warn("can't be removed from the cache: " + found + " (" + reason + "); its program is not kept");
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
    if (log_) log_(KVJIT_LOG_WARNING, message);
}

void DiskStore::warn_once(const std::string& message) {
    if (!said_unwritable_.exchange(true)) warn(message);
}

void DiskStore::account(std::int64_t published_bytes) {
    if (budget_bytes_.fetch_sub(published_bytes) >= published_bytes) return;
    const std::unique_lock alone(pruning_, std::try_to_lock);
    if (!alone) return;
    // Other processes publish too, so even an empty folder is looked at again after an eighth.
    const std::int64_t eighth = max_bytes_ / 8;
    const std::optional<std::int64_t> total = prune(*folder_, max_bytes_);
    budget_bytes_ = total ? std::min(eighth, max_bytes_ - *total) : eighth;
}

std::unique_ptr<DiskStore> open_disk_store(const DiskStoreOptions& options) {
    const auto memory_only = [&] { return std::make_unique<DiskStore>(std::nullopt, options); };
    const std::string path = options.folder ? *options.folder : default_cache_folder();
    if (path.empty()) return memory_only();
    auto folder = CacheFolder::open(*options.calls, path);
    if (folder) return std::make_unique<DiskStore>(std::move(*folder), options);
    if (options.log) options.log(KVJIT_LOG_WARNING, folder.error() + "; programs are kept in memory only");
    return memory_only();
}

}  // namespace kvjit::rt
