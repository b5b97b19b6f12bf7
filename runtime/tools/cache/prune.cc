// `kvjit cache prune` and `kvjit cache clear`: what removes entries.
#include <algorithm>
#include <charconv>
#include <ctime>
#include <limits>
#include <memory>
#include <span>

#include "bundle/files.h"
#include "cache/cache_commands.h"
#include "cache/folder.h"
#include "command/options.h"
#include "command/words.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

struct Request {
    std::optional<std::string> folder, max_age, max_size;
    bool all = false;  // of clear
    bool dry_run = false;
};

struct Unit {
    std::string_view name;
    std::int64_t factor;
};
constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();
constexpr Unit kTimes[] = {{"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}};
constexpr Unit kSizes[] = {{"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}, {"", 1}};

/// A whole number from 0 on and a unit. The error is what it takes.
Result<std::int64_t> quantity(const std::string& text, std::span<const Unit> units, const std::string& takes) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const auto unit = std::ranges::find(units, std::string_view(end), &Unit::name);
    if (error == std::errc::invalid_argument || text.starts_with('-') || unit == units.end()) return fail(takes);
    const std::int64_t most = kUnlimited / unit->factor;
    if (error == std::errc() && number <= most) return number * unit->factor;
    return fail("at most " + std::to_string(most).append(unit->name));
}

Result<std::int64_t> age_limit(const Request& request) {
    return request.max_age ? quantity(*request.max_age, kTimes, "a whole number of s, m, h or d, as 30d") : kUnlimited;
}

Result<std::int64_t> size_limit(const Request& request) {
    if (request.all) return -1;
    return request.max_size ? quantity(*request.max_size, kSizes, "a whole number of bytes, K, M or G, as 200M")
                            : kUnlimited;
}

struct Removed {
    std::size_t files = 0;
    std::int64_t bytes = 0;
    std::size_t stayed = 0;
};

void remove(const ManagedCache& cache, const CacheFile& file, bool dry_run, Removed& removed) {
    if (!dry_run && !cache.remove(file)) return void(++removed.stayed);
    ++removed.files;
    removed.bytes += file.bytes;
}

std::string report(const ManagedCache& cache, const Removed& removed, bool dry_run) {
    std::string text = cache.path() + ": " + number_of(removed.files, "file") + ", " +
                       size_text(static_cast<std::uint64_t>(removed.bytes)) +
                       (dry_run ? ", would be removed" : " removed");
    if (removed.stayed != 0) text += ", " + std::to_string(removed.stayed) + " in use or not removable";
    if (cache.strangers() != 0) text += "; " + std::to_string(cache.strangers()) + " that are not kvjit's stay";
    return text + "\n";
}

/// Removes from the least recently used entry on what is too old, or too much; and what killed processes left.
Removed prune(const ManagedCache& cache, std::int64_t max_age, std::int64_t max_bytes, bool dry_run) {
    Removed removed;
    std::int64_t kept = 0;
    const std::time_t now = std::time(nullptr);
    for (const CacheFile& file : cache.files()) {
        if (file.kind != rt::CacheFileKind::kEntry) {
            if (!dry_run) remove(cache, file, dry_run, removed);  // whether a process holds it shows by locking it
        } else if (file.bytes > max_bytes - kept) {
            max_bytes = kept - 1;  // no older entry stays in the place of this one
            remove(cache, file, dry_run, removed);
        } else if (now - file.used > max_age) {
            remove(cache, file, dry_run, removed);
        } else {
            kept += file.bytes;
        }
    }
    return removed;
}

Result<int> run_prune(const Request& request) {
    const Result<ManagedCache> cache = ManagedCache::open(request.folder);
    if (!cache) return fail(cache.error());
    const Removed removed = prune(*cache, *age_limit(request), *size_limit(request), request.dry_run);
    if (cache->exists() && !request.dry_run) cache->remove_empty_shards();
    print(escaped_lines(report(*cache, removed, request.dry_run)));
    return kExitOk;
}

Result<void> check_limits(const Request& request) {
    if (!request.max_age && !request.max_size) return fail("--max-age or --max-size is missing");
    if (const auto age = age_limit(request); !age)
        return fail("--max-age is " + in_quotes(*request.max_age) + "; it takes " + age.error());
    if (const auto size = size_limit(request); !size)
        return fail("--max-size is " + in_quotes(*request.max_size) + "; it takes " + size.error());
    return {};
}

Action declare_prune(Options& options) {
    auto request = std::make_shared<Request>();
    options.text("--max-age", request->max_age, {"AGE"},
                 "Remove entries that were used last longer ago: 90m, 12h, 30d");
    options.text("--max-size", request->max_size, {"SIZE"},
                 "Remove the least recently used entries until the others take no more than this: 500K, 200M, 1G");
    options.text("--cache-dir", request->folder, kFolder, "Another folder than kvjit's own");
    options.flag("--dry-run", request->dry_run, "Remove nothing, say what would be removed");
    options.check([&request = *request] { return check_limits(request); });
    return [request] { return run_prune(*request); };
}

Action declare_clear(Options& options) {
    auto request = std::make_shared<Request>();
    options.text("--cache-dir", request->folder, kFolder, "Another folder than kvjit's own");
    options.flag("--dry-run", request->dry_run, "Remove nothing, say what would be removed");
    request->all = true;
    return [request] { return run_prune(*request); };
}

}  // namespace

constinit const Command kCachePrune = {
    .name = "prune",
    .summary = "Remove entries that are old, or too many",
    .declare = declare_prune,
    .about =
        "Also removes temporary and lock files that no process holds. Processes prune the cache by themselves: to "
        "$KVJIT_CACHE_MAX_BYTES, else 512 MiB, as they publish.",
    .examples =
        "kvjit cache prune --max-age 30d\n"
        "kvjit cache prune --max-size 200M --dry-run\n"};

constinit const Command kCacheClear = {.name = "clear",
                                       .summary = "Remove all entries",
                                       .declare = declare_clear,
                                       .about = "Programs are compiled again when they are needed next.",
                                       .examples = "kvjit cache clear\n"};

}  // namespace kvjit::tool
