// The disk cache, and bundles.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "bundle/files.h"
#include "cache/folder.h"
#include "command/words.h"
#include "common/abi.h"
#include "cpu/host.h"
#include "doctor/finding.h"
#include "doctor/trial.h"
#include "environment.h"
#include "generator/identity.h"
#include "generator/program.h"
#include "generator/x86.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

constexpr const char* kCache = "disk cache";
constexpr const char* kMakeAnew = "make it anew: kvjit bundle create";
constexpr const char* kMakeWithThis = "make it anew with this version: kvjit bundle create";
constexpr const char* kFix =
    "make it a folder of this user that others can't write to (chmod go-w), or set KVJIT_CACHE_DIR to one";

std::string entries_text(const ManagedCache& cache) {
    std::size_t entries = 0;
    std::int64_t bytes = 0;
    for (const CacheFile& file : cache.files()) {
        entries += file.kind == rt::CacheFileKind::kEntry;
        bytes += file.bytes;
    }
    return number_of(entries, "entry") + ", " + size_text(static_cast<std::uint64_t>(bytes));
}

/// Whether this CPU can run code for the target of an identity.
bool runs_here(const std::string& target) {
    if (target.starts_with("nvptx64")) return false;
    const auto features = gen::parse_features(target.substr(target.rfind(':') + 1));
    return features && gen::missing_feature(*features, rt::host_target().features).empty();
}

/// Whether this version asks for another revision of the program, or no longer for its variant.
bool is_of_another_version(const gen::Identity& identity) {
    const gen::Backend backend = identity.target.starts_with("x86") ? gen::Backend::kCpu : gen::Backend::kCuda;
    const auto info = std::ranges::find(gen::programs(), identity.program, &gen::ProgramInfo::name);
    if (info == gen::programs().end()) return true;
    const auto variants = info->use(backend).variants;
    const auto variant = std::ranges::find(variants, identity.variant, &gen::Variant::name);
    return variant == variants.end() || variant->revision != identity.revision;
}

/// Programs of a bundle.
struct Counts {
    std::size_t for_this_cpu = 0, of_another_version = 0;
};

Counts count_programs(const rt::Bundle& bundle) {
    Counts counts;
    for (std::size_t i = 0; i < bundle.size(); ++i) {
        const auto text = bundle.identity(i);
        if (!text) continue;
        const auto identity = gen::parse_identity(*text);
        if (!identity) continue;
        counts.for_this_cpu += runs_here(identity->target);
        counts.of_another_version += is_of_another_version(*identity);
    }
    return counts;
}

}  // namespace

Findings examine_cache() {
    const std::string path = cache_path(std::nullopt);
    if (path.empty()) {
        return {{Health::kNote, kCache, "none: " + rt::why_no_cache_place() + "; each process compiles anew",
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
    const Counts counts = count_programs(*bundle);
    const std::string text = path + ": " + number_of(bundle->size(), "program") + ", " +
                             std::to_string(counts.for_this_cpu) + " for this CPU, " + signed_by(bundle->header());
    const auto own = static_cast<std::uint32_t>(abi::kKernelAbi);
    if (bundle->header().abi != own) {
        return {{Health::kProblem, "bundle",
                 text + "; of kernel ABI " + std::to_string(bundle->header().abi) + ", this kvjit's is " +
                     std::to_string(own),
                 kMakeWithThis}};
    }
    if (counts.of_another_version != 0) {
        return {{Health::kProblem, "bundle",
                 text + "; " + std::to_string(counts.of_another_version) +
                     " of revisions that this version of kvjit doesn't ask for",
                 kMakeWithThis}};
    }
    if (counts.for_this_cpu == 0) {
        return {{Health::kNote, "bundle", text,
                 "for CPUs add a level that this one has to bundle create's --targets: kvjit targets"}};
    }
    return {{Health::kGood, "bundle", text}};
}

}  // namespace kvjit::tool
