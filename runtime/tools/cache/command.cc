// `kvjit cache`: its commands, and the one that says where the cache is.
#include <memory>

#include "cache/cache_commands.h"
#include "cache/folder.h"
#include "command/options.h"
#include "commands.h"
#include "disk_cache/cache_folder.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

Result<int> show_path() {
    const std::string path = cache_path(std::nullopt);
    if (path.empty()) return fail("there is no disk cache: " + rt::why_no_cache_place());
    print(escaped(path) + "\n");
    return kExitOk;
}

Action declare(Options&) {
    return show_path;
}

constexpr Command kPath = {.name = "path",
                           .summary = "Print the folder of the disk cache",
                           .declare = declare,
                           .about = "$KVJIT_CACHE_DIR, else $XDG_CACHE_HOME/kvjit, else ~/.cache/kvjit.",
                           .examples = "du -sh \"$(kvjit cache path)\"\n"};

constexpr const Command* kCommands[] = {&kPath, &kCacheList, &kCacheVerify, &kCachePrune, &kCacheClear};

}  // namespace

constinit const Command kCacheCommand = {
    .name = "cache",
    .summary = "Look at the disk cache of compiled programs, check it, and make room in it",
    .commands = kCommands,
    .about =
        "Each entry is one compiled program, which any process of this user may load. Processes may use the cache "
        "meanwhile: a program whose entry is removed is compiled again when it is needed next, no more. Files that "
        "are not kvjit's are left alone. docs/cache_format.md says what the folder holds.",
    .examples =
        "kvjit cache list\n"
        "kvjit cache verify\n"
        "kvjit cache prune --max-age 30d --max-size 200M\n"};

}  // namespace kvjit::tool
