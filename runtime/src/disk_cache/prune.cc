#include "disk_cache/prune.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <tuple>
#include <vector>

#include "disk_cache/entry_lock.h"

namespace kvjit::rt {
namespace {

constexpr std::size_t kDigestDigits = 64;
constexpr std::string_view kEntrySuffix = ".kvjit";
constexpr std::string_view kLockSuffix = ".lock";
constexpr std::string_view kTemporarySuffix = ".tmp";
constexpr std::time_t kStaleSeconds = 3600;

struct Candidate {
    std::string name;
    std::int64_t bytes;
    timespec used;
};

bool used_earlier(const Candidate& a, const Candidate& b) {
    return std::tie(a.used.tv_sec, a.used.tv_nsec) < std::tie(b.used.tv_sec, b.used.tv_nsec);
}

bool begins_with_digest(std::string_view name) {
    return name.size() > kDigestDigits &&
           name.substr(0, kDigestDigits).find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_stale(const struct stat& file) {
    return file.st_mtim.tv_sec < std::time(nullptr) - kStaleSeconds;
}

class Pruning {
public:
    explicit Pruning(const CacheFolder& folder) : folder_(folder) {}

    void look_at(const std::string& name) {
        if (!begins_with_digest(name)) return;
        const std::string_view suffix = std::string_view(name).substr(kDigestDigits);
        struct stat file{};
        if (folder_.calls().status_of(folder_.descriptor(), name.c_str(), &file) < 0) return;
        if (suffix == kEntrySuffix) {
            entries_.push_back({name, file.st_size, file.st_mtim});
            total_ += file.st_size;
        } else if (is_stale(file)) {
            sweep(name, suffix);
        }
    }

    std::int64_t shrink_to(std::int64_t target) {
        std::sort(entries_.begin(), entries_.end(), used_earlier);
        for (const Candidate& entry : entries_) {
            if (total_ <= target) break;
            // Whether it went or another process took it first, it no longer counts; if it can't be removed it is
            // counted again next time.
            remove(entry.name);
            total_ -= entry.bytes;
        }
        return total_;
    }

    std::int64_t total() const { return total_; }

private:
    void sweep(const std::string& name, std::string_view suffix) {
        if (suffix.ends_with(kTemporarySuffix)) remove(name);
        // Whoever holds a lock may go on holding it; any other one is removed by letting go of it.
        if (suffix == kLockSuffix) EntryLock::acquire(folder_, name, std::chrono::milliseconds(0));
    }

    void remove(const std::string& name) { folder_.remove(name); }

    const CacheFolder& folder_;
    std::vector<Candidate> entries_;
    std::int64_t total_ = 0;
};

}  // namespace

std::string entry_file_name(std::string_view digest) {
    return std::string(digest) + std::string(kEntrySuffix);
}

std::string lock_file_name(std::string_view digest) {
    return std::string(digest) + std::string(kLockSuffix);
}

std::optional<std::int64_t> prune(const CacheFolder& folder, std::int64_t max_bytes) {
    const auto names = folder.calls().list(folder.descriptor());
    if (!names) return std::nullopt;
    Pruning pruning(folder);
    for (const std::string& name : *names) pruning.look_at(name);
    return pruning.total() > max_bytes ? pruning.shrink_to(max_bytes / 8 * 7) : pruning.total();
}

}  // namespace kvjit::rt
