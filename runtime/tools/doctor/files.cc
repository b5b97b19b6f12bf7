// The disk cache, the environment's variables, and bundles.
#include <sys/stat.h>
#include <unistd.h>

#include "bundle/files.h"
#include "cache/folder.h"
#include "common/abi.h"
#include "cpu/host.h"
#include "doctor/finding.h"
#include "environment.h"
#include "generator/identity.h"
#include "generator/x86.h"

namespace kvjit::tool {
namespace {

constexpr const char* kCache = "disk cache";

std::string entries_text(const ManagedCache& cache) {
    std::size_t entries = 0;
    std::int64_t bytes = 0;
    for (const CacheFile& file : cache.files()) {
        entries += file.kind == rt::CacheFileKind::kEntry;
        bytes += file.bytes;
    }
    return std::to_string(entries) + " entries, " + size_text(static_cast<std::uint64_t>(bytes));
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
        return {{Health::kNote, kCache,
                 "none: KVJIT_CACHE_DIR is empty, or there is no home folder; each process compiles anew",
                 "set KVJIT_CACHE_DIR to a folder of this user"}};
    }
    const Result<ManagedCache> cache = ManagedCache::open(std::nullopt);
    if (!cache) {
        return {
            {Health::kProblem, kCache, cache.error(),
             "make it a folder of this user that others can't write to (chmod go-w), or set KVJIT_CACHE_DIR to one"}};
    }
    if (!cache->exists()) return {{Health::kGood, kCache, path + ", made at the first compile"}};
    if (access(path.c_str(), W_OK) != 0) {
        return {{Health::kNote, kCache,
                 path + " can only be read: hits work, nothing is added; " + entries_text(*cache),
                 "chmod u+w, or set KVJIT_CACHE_DIR to a folder that can be written"}};
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

Findings examine_environment() {
    Findings findings;
    rt::report_environment([&](kvjit_log_level, const std::string& message) {
        findings.push_back({Health::kProblem, "environment", message,
                            "unset " + message.substr(0, message.find(' ')) + ", or correct it"});
    });
    std::string set;
    for (const rt::VariableInfo& variable : rt::environment_variables()) {
        const auto value = rt::environment_text(variable.variable);
        if (value && !value->empty()) set += (set.empty() ? "" : ", ") + std::string(variable.name) + "=" + *value;
    }
    findings.insert(findings.begin(),
                    {Health::kGood, "environment", set.empty() ? "no variable of kvjit's is set" : set});
    return findings;
}

Findings examine_bundle(const std::string& path) {
    const Result<rt::Bundle> bundle = open_bundle(path);
    if (!bundle) return {{Health::kProblem, "bundle", bundle.error(), "make it anew: kvjit bundle create"}};
    if (const auto entries = read_entries(*bundle, path); !entries) {
        return {{Health::kProblem, "bundle", entries.error(), "make it anew: kvjit bundle create"}};
    }
    const std::string text = path + ": " + std::to_string(bundle->size()) + " programs, " +
                             std::to_string(runnable_here(*bundle)) + " for this CPU, " + signed_by(bundle->header());
    const auto own = static_cast<std::uint32_t>(abi::kKernelAbi);
    if (bundle->header().abi == own) return {{Health::kGood, "bundle", text}};
    return {
        {Health::kProblem, "bundle",
         text + "; of kernel ABI " + std::to_string(bundle->header().abi) + ", this kvjit's is " + std::to_string(own),
         "make it anew with this version: kvjit bundle create"}};
}

}  // namespace kvjit::tool
