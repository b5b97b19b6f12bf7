// `kvjit bundle merge`.
#include <map>
#include <memory>
#include <optional>

#include "bundle/bundle_commands.h"
#include "bundle/files.h"
#include "command/options.h"
#include "command/words.h"
#include "common/abi.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

struct Request {
    std::string out;
    std::vector<std::string> bundles;
    std::optional<std::string> key_file;  // nothing: not signed
};

/// Entries of all bundles, by identity, each once.
class Merged {
public:
    Result<void> add(const std::string& path) {
        const Result<rt::Bundle> bundle = open_bundle(path);
        if (!bundle) return fail(bundle.error());
        if (auto same = take_abi(bundle->header().abi, path); !same) return same;
        Result<std::vector<rt::BundleEntry>> entries = read_entries(*bundle, path);
        if (!entries) return fail(entries.error());
        for (rt::BundleEntry& entry : *entries) {
            const std::string identity = entry.code.identity;
            const auto known = entries_.find(identity);
            if (known == entries_.end()) {
                entries_.emplace(identity, From{path, std::move(entry)});
            } else if (!same_code(known->second.entry, entry)) {
                return conflict(known->second, path);
            } else if (known->second.entry.texts.source.empty()) {
                known->second.entry.texts = std::move(entry.texts);  // a bundle may be made without sources
            }
        }
        return {};
    }

    Result<std::string> encode() const {
        std::vector<rt::BundleEntry> all;
        for (const auto& [identity, from] : entries_) all.push_back(from.entry);
        auto bytes = rt::encode_bundle(abi_.value_or(abi::kKernelAbi), all);
        if (!bytes) return fail(bytes.error());
        return *std::move(bytes);
    }
    std::size_t size() const { return entries_.size(); }

private:
    struct From {
        std::string path;
        rt::BundleEntry entry;
    };

    Result<void> take_abi(std::uint32_t abi, const std::string& path) {
        if (abi_.value_or(abi) != abi) {
            return fail(path + " is for kernel ABI " + std::to_string(abi) + ", those before it are for " +
                        std::to_string(*abi_));
        }
        abi_ = abi;
        return {};
    }

    static bool same_code(const rt::BundleEntry& one, const rt::BundleEntry& other) {
        return one.code.provenance == other.code.provenance && one.code.image == other.code.image;
    }

    static Result<void> conflict(const From& from, const std::string& path) {
        return fail(from.path + " and " + path + " have the same program by different makers: " +
                    from.entry.code.identity + "; merge bundles of one compiler, or add both to the engine");
    }

    std::map<std::string, From> entries_;
    std::optional<std::uint32_t> abi_;
};

Result<int> merge(const Request& request) {
    Merged merged;
    for (const std::string& path : request.bundles) {
        if (auto added = merged.add(path); !added) return fail(added.error());
    }
    const Result<std::string> bytes = merged.encode();
    if (!bytes) return fail(bytes.error());
    if (auto done = write_bundle(request.out, *bytes, request.key_file); !done) return fail(done.error());
    print(escaped(request.out) + ": " + number_of(merged.size(), "program") + "; " + size_text(bytes->size()) + "\n");
    return kExitOk;
}

Action declare(Options& options) {
    auto request = std::make_shared<Request>();
    options.text("OUT", request->out, kFile, "The bundle to write")->required();
    options.text("BUNDLE", request->bundles, kFile, "Bundles to read")->required();
    options.text("--key", request->key_file, kFile, kSignHelp);
    return [request] { return merge(*request); };
}

}  // namespace

constinit const Command kBundleMerge = {
    .name = "merge",
    .summary = "Make one bundle of several",
    .declare = declare,
    .about =
        "A program that several have is stored once; if its code differs, as two compilers made it, that is an "
        "error. Signatures are not taken over.",
    .examples = "kvjit bundle merge all.kvjb cpu.kvjb gpu.kvjb\n",
    .status = "0 written, 2 bad arguments, a bundle that is not whole, or code that differs: nothing is written"};

}  // namespace kvjit::tool
