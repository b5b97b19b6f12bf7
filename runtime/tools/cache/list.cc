// `kvjit cache list`.
#include <ctime>
#include <memory>

#include "bundle/files.h"
#include "cache/cache_commands.h"
#include "cache/folder.h"
#include "command/options.h"
#include "command/words.h"
#include "json.h"
#include "table.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

struct Request {
    std::optional<std::string> folder;
    bool json = false;
};

Json entry_json(const CacheFile& file, const CacheEntry& entry) {
    Json json = {{"file", file.path()}, {"bytes", file.bytes}, {"used", file.used}};
    if (!entry.bad.empty()) {
        json["bad"] = entry.bad;
        return json;
    }
    json.update({{"program", entry.program},
                 {"variant", entry.variant},
                 {"image", entry.image},
                 {"object_bytes", entry.object_bytes},
                 {"target", entry.target},
                 {"identity", entry.identity},
                 {"maker", entry.maker}});
    return json;
}

std::vector<std::string> row_of(const CacheFile& file, const CacheEntry& entry, std::time_t now) {
    const std::string bytes = std::to_string(file.bytes), age = age_text(now - file.used);
    if (!entry.bad.empty()) return {bytes, age, "bad", "", "", file.path() + " " + entry.bad};
    return {bytes, age, entry.program + "/" + entry.variant, entry.image, target_label(entry.target), entry.constants};
}

std::string summary_of(const ManagedCache& cache, std::size_t entries, std::int64_t bytes) {
    std::string text = cache.path();
    if (!cache.exists()) return text + ": not there yet\n";
    text += ": " + number_of(entries, "entry") + ", " + size_text(static_cast<std::uint64_t>(bytes));
    const std::size_t beside = cache.files().size() - entries;
    if (beside != 0) text += ", " + number_of(beside, "temporary or lock file");
    if (cache.strangers() != 0) text += ", " + number_of(cache.strangers(), "foreign file");
    return text + "\n";
}

Result<int> list(const Request& request) {
    const Result<ManagedCache> cache = ManagedCache::open(request.folder);
    if (!cache) return fail(cache.error());
    Json entries = Json::array();
    std::vector<std::vector<std::string>> rows = {{"bytes", "used", "program", "image", "target", "constants"}};
    std::int64_t bytes = 0;
    for (const CacheFile& file : cache->files()) {
        bytes += file.bytes;
        if (file.kind != rt::CacheFileKind::kEntry) continue;
        const CacheEntry entry = cache->read(file);
        entries.push_back(entry_json(file, entry));
        rows.push_back(row_of(file, entry, std::time(nullptr)));
    }
    if (request.json) {
        print(dump({{"folder", cache->path()},
                    {"exists", cache->exists()},
                    {"bytes", bytes},
                    {"entries", entries},
                    {"strangers", cache->strangers()}}));
    } else {
        print(escaped_lines((entries.empty() ? "" : table_text(rows)) + summary_of(*cache, entries.size(), bytes)));
    }
    return kExitOk;
}

Action declare(Options& options) {
    auto request = std::make_shared<Request>();
    options.text("--cache-dir", request->folder, kFolder, "Another folder than kvjit's own");
    options.json(request->json);
    return [request] { return list(*request); };
}

}  // namespace

constinit const Command kCacheList = {
    .name = "list",
    .summary = "List the entries: size, last use, program, image, target, constants",
    .declare = declare,
    .about =
        "An entry holds a program and no spec: all specs that lower to the program share it, and its constants are "
        "what "
        "they have in common. kvjit inspect SPEC --images names the image of each program of a spec, as logs and perf "
        "do. The most recently used entry comes first. Listing counts as no use.",
    .examples =
        "kvjit cache list\n"
        "kvjit cache list --json\n"};

}  // namespace kvjit::tool
