#include "disk_cache/prune.h"

#include <algorithm>
#include <bitset>
#include <chrono>
#include <ctime>
#include <limits>
#include <tuple>
#include <vector>

#include "disk_cache/entry_lock.h"

namespace kvjit::rt {
namespace {

constexpr std::size_t kDigestDigits = 64;
constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr std::string_view kEntrySuffix = ".kvjit";
constexpr std::string_view kLockSuffix = ".lock";

constexpr std::int64_t kShards = 256;
constexpr std::size_t kShardDigits = 2;
constexpr std::size_t kEnoughFiles = 128;        // in whole shards, enough to represent all
constexpr std::size_t kMostNamesBeside = 1024;   // of files beside the shards
constexpr std::size_t kMostFilesOfShard = 1024;  // far more than a shard within its part of the limit holds

constexpr std::time_t kLongestWriteSeconds = 3600;

struct File {
    std::string name;  // from the cache's folder
    std::int64_t bytes;
    timespec used;
};

bool used_later(const File& a, const File& b) {
    return std::tie(a.used.tv_sec, a.used.tv_nsec) > std::tie(b.used.tv_sec, b.used.tv_nsec);
}

/// The sum, or the largest number: a file may claim any size.
std::int64_t saturating_sum(std::int64_t a, std::int64_t b) {
    std::int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::int64_t>::max() : sum;
}

bool is_hexadecimal(std::string_view text) {
    return text.find_first_not_of(kHexDigits) == std::string_view::npos;
}

bool begins_with_digest(std::string_view name) {
    return name.size() > kDigestDigits && is_hexadecimal(name.substr(0, kDigestDigits));
}

std::size_t shard_number(const std::string& name) {
    return std::stoul(name, nullptr, 16);
}

std::string numbered_shard(std::size_t number) {
    return {kHexDigits[number / 16], kHexDigits[number % 16]};
}

using Shards = std::bitset<kShards>;

/// The shards that exist, or may: a listing costs less than opening each one that is missing.
Shards existing_shards(const CacheFolder& folder) {
    constexpr std::size_t kMost = kShards + kMostNamesBeside;
    const auto names = folder.calls().list(folder.descriptor(), kMost);
    if (!names || names->size() == kMost) return ~Shards();
    Shards found;
    for (const std::string& name : *names) {
        if (is_shard_name(name)) found.set(shard_number(name));
    }
    return found;
}

/// Whether a file may still be being written. Where there are no locks, an older one is pruned like an entry.
bool is_young(const struct stat& file) {
    return file.st_mtim.tv_sec > std::time(nullptr) - kLongestWriteSeconds;
}

/// Some of the shards and what they hold.
class Sample {
public:
    explicit Sample(const CacheFolder& folder) : folder_(folder), existing_(existing_shards(folder)) {}

    void look_at(std::size_t number) {
        if (!existing_.test(number)) return void(++shards_);
        const std::string name = numbered_shard(number);
        const auto shard = folder_.subfolder(name);
        if (!shard && shard.error().kind != ReadFailure::Kind::kAbsent) return;
        if (!shard) return void(++shards_);
        const auto names = folder_.calls().list(shard->descriptor(), kMostFilesOfShard);
        if (!names) return;
        for (const std::string& file : *names) look_at(*shard, name, file);
        ++shards_;
        seen_ += names->size();
    }

    bool is_enough() const { return seen_ >= kEnoughFiles; }
    bool is_all() const { return shards_ == kShards; }
    std::int64_t bytes() const { return bytes_; }

    /// The sample's part of something spread evenly over all shards, and the reverse.
    std::int64_t part_of(std::int64_t all) const { return all / kShards * shards_ + all % kShards * shards_ / kShards; }
    std::int64_t whole_of(std::int64_t part) const { return shards_ == 0 ? 0 : part / shards_ * kShards; }

    /// A removed file no longer counts, whoever removed it; one that can't be removed is counted again next time.
    void shrink_to(std::int64_t most) {
        std::sort(files_.begin(), files_.end(), used_later);
        std::int64_t kept = being_written_;
        const auto is_too_much = [&](const File& file) { return saturating_sum(kept, file.bytes) > most; };
        auto file = files_.begin();
        for (; file != files_.end() && !is_too_much(*file); ++file) kept += file->bytes;
        for (; file != files_.end(); ++file) folder_.remove(file->name);
        bytes_ = kept;
    }

private:
    void look_at(const CacheFolder& shard, const std::string& shard_name, const std::string& name) {
        const CacheFileKind kind = kind_of(name);
        if (kind == CacheFileKind::kLock) sweep(shard, name);
        if (kind == CacheFileKind::kLock || kind == CacheFileKind::kOther) return;
        const bool is_temporary = kind == CacheFileKind::kTemporary;
        if (is_temporary && sweep(shard, name)) return;
        struct stat file{};
        if (folder_.calls().status_of(shard.descriptor(), name.c_str(), &file) < 0) return;
        bytes_ = saturating_sum(bytes_, file.st_size);
        if (is_temporary && is_young(file)) {
            being_written_ = saturating_sum(being_written_, file.st_size);
        } else {
            files_.push_back({shard_name + '/' + name, file.st_size, file.st_mtim});
        }
    }

    const CacheFolder& folder_;
    Shards existing_;
    std::vector<File> files_;
    std::int64_t bytes_ = 0;
    std::int64_t being_written_ = 0;  // part of bytes_
    std::int64_t shards_ = 0;
    std::size_t seen_ = 0;
};

Sample sample_from(const CacheFolder& folder, const std::string& first) {
    Sample sample(folder);
    const std::size_t start = shard_number(first);
    for (std::size_t i = 0; i < kShards && !sample.is_enough(); ++i) {
        sample.look_at((start + i) % kShards);
    }
    return sample;
}

}  // namespace

CacheFileKind kind_of(std::string_view file) {
    if (!begins_with_digest(file)) return CacheFileKind::kOther;
    if (file.ends_with(kLockSuffix)) return CacheFileKind::kLock;
    if (file.ends_with(kTemporarySuffix)) return CacheFileKind::kTemporary;
    return file.ends_with(kEntrySuffix) ? CacheFileKind::kEntry : CacheFileKind::kOther;
}

bool is_shard_name(std::string_view folder) {
    return folder.size() == kShardDigits && is_hexadecimal(folder);
}

/// By taking the file's lock and releasing it.
bool sweep(const CacheFolder& shard, const std::string& file) {
    return EntryLock::acquire(shard, file, std::chrono::milliseconds(0)).held();
}

std::string shard_name(std::string_view entry) {
    return std::string(entry.substr(0, kShardDigits));
}

std::string entry_file_name(std::string_view entry) {
    return std::string(entry) + std::string(kEntrySuffix);
}

std::string lock_file_name(std::string_view entry) {
    return std::string(entry) + std::string(kLockSuffix);
}

bool is_entry_of(std::string_view file, std::string_view digest) {
    return file.starts_with(digest) && file.ends_with(kEntrySuffix);
}

std::int64_t make_room(const CacheFolder& folder, const std::string& first, std::int64_t bytes,
                       std::int64_t max_bytes) {
    Sample sample = sample_from(folder, first);
    const std::int64_t most = sample.part_of(max_bytes);
    const std::int64_t most_before = most - sample.part_of(bytes);
    const bool fits = sample.bytes() <= most_before;
    if (!fits) sample.shrink_to(std::min(most / 8 * 7, most_before));
    // The parts that were not examined exceed their share, too: the next publish makes room there.
    if (!fits && !sample.is_all()) return 0;
    // Other processes publish as well, so even an empty folder is examined again after an eighth.
    return std::min(max_bytes / 8, sample.whole_of(most - sample.bytes()));
}

}  // namespace kvjit::rt
