// The disk cache, and bundles.
#include <sys/stat.h>
#include <unistd.h>

#include "bundle/files.h"
#include "cache/folder.h"
#include "command/words.h"
#include "common/abi.h"
#include "cpu/host.h"
#include "doctor/finding.h"
#include "doctor/trial.h"
#include "environment.h"
#include "generator/identity.h"
#include "generator/x86.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

constexpr const char* kCache = "disk cache";
constexpr const char* kMakeAnew = "make it anew: kvjit bundle create";
constexpr const char* kFix =
    "make it a folder of this user that others can't write to (chmod go-w), or set KVJIT_CACHE_DIR to one";

/// Precondition: there is no place for the cache.
std::string why_no_place() {
    if (rt::environment_text(rt::Variable::kCacheDir)) return "KVJIT_CACHE_DIR is empty";
    const auto home = rt::environment_text("HOME");
    return home ? "HOME is " + in_quotes(*home) + ", no absolute path" : "HOME is not set";
}

std::string entries_text(const ManagedCache& cache) {
    std::size_t entries = 0;
    std::int64_t bytes = 0;
    for (const CacheFile& file : cache.files()) {
        entries += file.kind == rt::CacheFileKind::kEntry;
        bytes += file.bytes;
    }
    return number_of(entries, "entry") + ", " + size_text(static_cast<std::uint64_t>(bytes));
}

/// Programs of a bundle that this CPU can run.
std::size_t runnable_here(const rt::Bundle& bundle) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < bundle.size(); ++i) {
        const auto code = bundle.code(i);
        if (!code || code->target.starts_with("nvptx64")) continue;
        const auto features = gen::parse_features(code->target.substr(code->target.rfind(':') + 1));
        count += features && gen::missing_feature(*features, rt::host_target().features).empty();
    }
    return count;
}

}  // namespace

Findings examine_cache() {
    const std::string path = cache_path(std::nullopt);
    if (path.empty()) {
        return {{Health::kNote, kCache, "none: " + why_no_place() + "; each process compiles anew",
                 "set KVJIT_CACHE_DIR to a folder of this user"}};
    }
    const Result<ManagedCache> cache = ManagedCache::open(std::nullopt);
    if (!cache) {
        return {{Health::kProblem, kCache, cache.error(), kFix}};
    }
    if (!cache->exists()) {
        if (const auto why = why_no_folder(rt::default_cache_place())) return {{Health::kProblem, kCache, *why, kFix}};
        return {{Health::kGood, kCache, path + ", made at the first compile"}};
    }
    if (access(path.c_str(), W_OK) != 0) {
        return {{Health::kNote, kCache,
                 path + " can only be read: hits work, nothing is added; " + entries_text(*cache),
                 "chmod u+w, or set KVJIT_CACHE_DIR to a folder that can be written"}};
    }
    if (const auto why = why_no_folder(rt::default_cache_place())) {
        return {{Health::kProblem, kCache, *why + "; hits work, nothing is added; " + entries_text(*cache),
                 "make room: kvjit cache prune, or set KVJIT_CACHE_DIR to another folder"}};
    }
    Findings findings = {{Health::kGood, kCache, path + ": " + entries_text(*cache)}};
    for (const CacheFile& file : cache->files()) {
        if (file.kind != rt::CacheFileKind::kEntry) continue;
        const std::string why = cache->read(file).bad;
        if (!why.empty()) {
            findings.push_back({Health::kProblem, kCache, file.path() + " " + why,
                                "kvjit cache verify names all such; rm " + path + "/" + file.path()});
            break;
        }
    }
    return findings;
}

Findings examine_bundle(const std::string& path) {
    auto file = rt::open_bundle_file(path);
    if (!file) {
        return {{Health::kProblem, "bundle", path + ' ' + file.error(),
                 "name a bundle that is there and that this user may read"}};
    }
    const auto bundle = rt::Bundle::open(*std::move(file));
    if (!bundle) return {{Health::kProblem, "bundle", path + ' ' + bundle.error(), kMakeAnew}};
    if (const auto entries = read_entries(*bundle, path); !entries) {
        return {{Health::kProblem, "bundle", entries.error(), kMakeAnew}};
    }
    const std::string text = path + ": " + number_of(bundle->size(), "program") + ", " +
                             std::to_string(runnable_here(*bundle)) + " for this CPU, " + signed_by(bundle->header());
    const auto own = static_cast<std::uint32_t>(abi::kKernelAbi);
    if (bundle->header().abi == own) return {{Health::kGood, "bundle", text}};
    return {
        {Health::kProblem, "bundle",
         text + "; of kernel ABI " + std::to_string(bundle->header().abi) + ", this kvjit's is " + std::to_string(own),
         "make it anew with this version: kvjit bundle create"}};
}

}  // namespace kvjit::tool
