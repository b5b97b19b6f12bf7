// `kvjit cache verify`.
#include <memory>

#include "cache/cache_commands.h"
#include "cache/folder.h"
#include "command/options.h"
#include "command/words.h"
#include "json.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

struct Request {
    std::optional<std::string> folder;
    bool json = false;
};

Result<int> verify(const Request& request) {
    const Result<ManagedCache> cache = ManagedCache::open(request.folder);
    if (!cache) return fail(cache.error());
    Json bad = Json::array();
    std::size_t entries = 0;
    for (const CacheFile& file : cache->files()) {
        if (file.kind != rt::CacheFileKind::kEntry) continue;
        ++entries;
        const std::string why = cache->read(file).bad;
        if (why.empty()) continue;
        bad.push_back({{"file", file.path()}, {"bad", why}});
        if (!request.json) complain(cache->path() + "/" + file.path() + " " + why);
    }
    if (request.json) {
        print(dump({{"folder", cache->path()}, {"entries", entries}, {"bad", bad}}));
    } else {
        print(escaped(cache->path()) + ": " + number_of(entries, "entry") + ", " + std::to_string(bad.size()) +
              " bad\n");
    }
    return bad.empty() ? kExitOk : kExitMismatch;
}

Action declare(Options& options) {
    auto request = std::make_shared<Request>();
    options.text("--cache-dir", request->folder, kFolder, "Another folder than kvjit's own");
    options.json(request->json);
    return [request] { return verify(*request); };
}

}  // namespace

constinit const Command kCacheVerify = {
    .name = "verify",
    .summary = "Read all entries and compare their digests",
    .declare = declare,
    .about =
        "Names each entry that is bad: cut short, changed, of another format, another user's, or under another "
        "entry's name. A process that meets one removes it and compiles its program again.",
    .examples = "kvjit cache verify\n",
    .status = "0 all are whole, 1 some is bad, 2 bad arguments, or a folder that can't be used"};

}  // namespace kvjit::tool
