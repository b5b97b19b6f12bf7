#include "cache/folder.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "bundle/files.h"
#include "disk_cache/entry.h"
#include "generator/identity.h"
#include "generator/program.h"
#include "images/wanted.h"

namespace kvjit::tool {
namespace {

constexpr std::size_t kMostNames = std::size_t{1} << 24;

}  // namespace

std::string cache_path(const std::optional<std::string>& folder) {
    return folder ? *folder : rt::default_cache_place().path;
}

std::string age_text(std::int64_t seconds) {
    constexpr std::pair<std::int64_t, const char*> kUnits[] = {{86400, " days"}, {3600, " hours"}, {60, " minutes"}};
    for (const auto& [length, unit] : kUnits) {
        if (seconds >= 2 * length) return std::to_string(seconds / length) + unit;
    }
    return std::to_string(std::max<std::int64_t>(seconds, 0)) + " s";
}

Result<ManagedCache> ManagedCache::open(const std::optional<std::string>& folder) {
    ManagedCache cache(cache_path(folder));
    if (cache.path_.empty()) return fail("there is no disk cache: " + rt::why_no_cache_place());
    struct stat known{};
    if (::stat(cache.path_.c_str(), &known) != 0) {
        if (errno == ENOENT) return cache;
        return fail("the cache folder " + cache.path_ + " can't be used: " + std::strerror(errno));
    }
    auto opened = rt::CacheFolder::open(rt::system_calls(), {cache.path_, cache.path_});
    if (!opened) return fail(opened.error());
    cache.folder_.emplace(*std::move(opened));
    cache.list();
    return cache;
}

void ManagedCache::list() {
    const auto names = folder_->calls().list(folder_->descriptor(), kMostNames);
    for (const std::string& name : names ? *names : std::vector<std::string>()) {
        rt::is_shard_name(name) ? list_shard(name) : void(++strangers_);
    }
    std::ranges::sort(files_, [](const CacheFile& a, const CacheFile& b) {
        return std::pair(-a.used, a.path()) < std::pair(-b.used, b.path());
    });
}

void ManagedCache::list_shard(const std::string& shard) {
    const auto folder = folder_->subfolder(shard);
    if (!folder) return void(++strangers_);
    shards_.push_back(shard);
    const auto names = folder->calls().list(folder->descriptor(), kMostNames);
    for (const std::string& name : names ? *names : std::vector<std::string>()) {
        const rt::CacheFileKind kind = rt::kind_of(name);
        struct stat status{};
        const bool is_file =
            folder->calls().status_of(folder->descriptor(), name.c_str(), &status) == 0 && S_ISREG(status.st_mode);
        const bool is_ours = is_file && kind != rt::CacheFileKind::kOther && rt::shard_name(name) == shard;
        if (is_ours) {
            files_.push_back({shard, name, kind, status.st_size, status.st_mtim.tv_sec});
        } else {
            ++strangers_;
        }
    }
}

CacheEntry ManagedCache::read(const CacheFile& file) const {
    const auto bytes = folder_->read(file.path(), rt::kMaxEntryBytes);
    if (!bytes) return {.bad = bytes.error().kind == rt::ReadFailure::Kind::kAbsent ? "is gone" : bytes.error().reason};
    const auto view = rt::decode_entry(*bytes);
    if (!view) return {.bad = "is bad: " + std::string(view.error())};
    const rt::EntryKey key{std::string(view->identity), std::string(view->source_digest), std::string(view->maker)};
    if (rt::entry_file_name(rt::entry_name(key, view->maker)) != file.name) return {.bad = "has another entry's name"};
    CacheEntry entry{.identity = key.identity,
                     .maker = std::string(view->maker),
                     .object_bytes = static_cast<std::int64_t>(view->object.size())};
    const auto parts = gen::parse_identity(entry.identity);
    if (!parts) return entry;
    entry.image = rt::image_name(parts->program, entry.identity);
    entry.program = gen::label_of(parts->program);
    entry.variant = parts->variant;
    entry.constants = constants_text(*parts);
    entry.target = target_name(parts->target);
    return entry;
}

bool ManagedCache::remove(const CacheFile& file) const {
    if (file.kind == rt::CacheFileKind::kEntry) return folder_->remove(file.path()) == 0;
    const auto shard = folder_->subfolder(file.shard);
    return shard && rt::sweep(*shard, file.name);
}

void ManagedCache::remove_empty_shards() const {
    for (const std::string& shard : shards_) folder_->calls().remove_folder(folder_->descriptor(), shard.c_str());
}

}  // namespace kvjit::tool
