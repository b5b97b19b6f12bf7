// `kvjit bundle create`, `merge`, `sign`: what writes bundles.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <map>
#include <ranges>
#include <span>

#include "bundle/entries.h"
#include "bundle/files.h"
#include "bundle/options.h"
#include "common/abi.h"
#include "disk_cache/disk_store.h"
#include "environment.h"
#include "generator/spec_list.h"
#include "input_file.h"
#include "library_search.h"
#include "terminal.h"
#include "usable_cores.h"

namespace kvjit::tool {
namespace {

/// The compiler beside libkvjit, since the command lies elsewhere; "" leaves the choice to the environment.
std::string compiler_path() {
    Dl_info info;
    const bool chosen = !rt::environment_text(rt::Variable::kCompiler).value_or("").empty();
    if (chosen || dladdr(reinterpret_cast<const void*>(&kvjit_status_name), &info) == 0) return "";
    const std::string library = rt::real_path(info.dli_fname).value_or(info.dli_fname);
    return rt::parent_folder(library) + "/libkvjit_compiler.so";
}

std::unique_ptr<rt::Cache> open_cache(const std::optional<std::string>& folder, const rt::Log& log) {
    if (folder && folder->empty()) return nullptr;
    rt::DiskStoreOptions options;
    options.folder = folder;
    options.log = log;
    return rt::open_disk_store(options);
}

rt::ImagesOptions images_options(const CreateOptions& options) {
    rt::ImagesOptions images;
    images.log = [](kvjit_log_level level, const std::string& message) {
        if (level >= KVJIT_LOG_WARNING) complain("warning: " + message);
    };
    rt::report_environment(images.log);
    images.backends = rt::make_backends({.compiler = compiler_path()});
    images.disk = open_cache(options.cache_dir, images.log);
    const std::string templates = rt::environment_text(rt::Variable::kTemplateDir).value_or("");
    images.templates = templates.empty() ? gen::embedded_templates() : gen::folder_templates(templates);
    return images;
}

/// `where` is put before errors about the list.
Result<void> add_specs(std::vector<gen::KernelSpec>& specs, const std::string& where, std::string_view text,
                       std::int64_t max_combinations) {
    const gen::Result<gen::SpecList> list = gen::parse_spec_list(text, max_combinations);
    if (!list) return fail(where + error_text(list.error()));
    for (const gen::SpecList::Item& item : list->specs) specs.push_back(item.spec);
    for (const gen::SpecList::LeftOut& out : list->left_out) {
        complain("left out: " + where + "line " + std::to_string(out.line) + ": " + out.combination + ": " +
                 out.reason.message);
    }
    return {};
}

Result<std::vector<gen::KernelSpec>> read_specs(const CreateOptions& options) {
    std::vector<gen::KernelSpec> specs;
    for (const std::string& path : options.spec_files) {
        const Result<std::string> text = read_file(path);
        if (!text) return fail(text.error());
        if (auto added = add_specs(specs, path + ": ", *text, options.max_combinations); !added)
            return fail(added.error());
    }
    for (const std::string& text : options.specs) {
        if (options.specs.size() > 1 && !text.starts_with("op=")) {
            return fail("SPEC \"" + text +
                        "\" is one of several, each of which is a spec and begins with op=; a spec's "
                        "fields have commas between them");
        }
        if (auto added = add_specs(specs, "", text, options.max_combinations); !added) return fail(added.error());
    }
    if (specs.empty()) return fail("there is no spec to make kernels of: --specs FILE, or SPEC");
    return specs;
}

/// The names between the commas. An empty one is refused: a script's variable may be unset.
Result<std::vector<std::string>> split_targets(const std::vector<std::string>& lists) {
    std::vector<std::string> names;
    for (const std::string& list : lists) {
        const std::size_t before = names.size();
        for (const auto part : std::views::split(list, ',')) names.emplace_back(part.begin(), part.end());
        const auto added = std::span(names).subspan(before);
        if (added.empty() || std::ranges::find(added, "") != added.end()) {
            return fail("--targets is '" + list + "'; it has an empty name");
        }
    }
    return names;
}

std::size_t thread_count(int jobs) {
    return jobs > 0 ? static_cast<std::size_t>(jobs) : rt::usable_cores();
}

std::vector<rt::BundleEntry> bundle_entries(std::vector<rt::MadeEntry> made, const EntryJobs& jobs,
                                            bool without_sources) {
    std::vector<rt::BundleEntry> entries;
    for (auto& [key, entry] : made) {
        rt::BundleCode code{key.identity, rt::provenance_text(key), jobs.jobs.at(key.identity).target.text(),
                            std::move(entry.object)};
        rt::BundleTexts texts;
        if (!without_sources) texts = {std::move(entry.source), std::move(entry.log)};
        entries.push_back({std::move(code), std::move(texts)});
    }
    return entries;
}

/// Compiles, with a progress bar on a terminal.
Result<std::vector<rt::MadeEntry>> make_with_progress(rt::Images& images, const EntryJobs& jobs,
                                                      const CreateOptions& options) {
    Progress progress(static_cast<std::int64_t>(jobs.jobs.size()));
    return make_entries(images, jobs, thread_count(options.jobs), [&](const EntryJob& job) {
        if (!options.quiet) {
            progress.advance(std::string(job.program.info->label) + " for " + job.target.name());
        }
    });
}

std::string summary(const std::string& out, std::size_t specs, std::size_t targets, const EntryJobs& jobs,
                    const kvjit_engine_stats& stats, std::uint64_t bytes, double seconds) {
    char text[256];
    std::snprintf(text, sizeof text, ": %zu specs, %zu targets, %zu programs; %lld compiled, %lld from the cache; ",
                  specs, targets, jobs.jobs.size(), static_cast<long long>(stats.compiles),
                  static_cast<long long>(stats.disk_hits));
    char took[32];
    std::snprintf(took, sizeof took, ", %.1f s\n", seconds);
    return escaped(out) + text + size_text(bytes) + took;
}

/// What would fail at the end fails before minutes of compiling.
Result<void> check_output(const CreateOptions& options) {
    if (options.key_file) {
        if (const auto key = read_key(*options.key_file); !key) return fail(key.error());
    }
    return check_writable(options.out);
}

Result<int> create(const CreateOptions& options) {
    const auto start = std::chrono::steady_clock::now();
    if (auto soon = check_output(options); !soon) return fail(soon.error());
    const Result<std::vector<gen::KernelSpec>> specs = read_specs(options);
    if (!specs) return fail(specs.error());
    const Result<std::vector<std::string>> targets = split_targets(options.targets);
    if (!targets) return fail(targets.error());
    const Result<EntryJobs> jobs = plan_entries(*specs, *targets);
    if (!jobs) return fail(jobs.error());
    for (const std::string& each : jobs->left_out) complain("left out: " + each);
    rt::Images images(images_options(options));
    Result<std::vector<rt::MadeEntry>> made = make_with_progress(images, *jobs, options);
    if (!made) return fail(made.error());
    const auto bytes =
        rt::encode_bundle(abi::kKernelAbi, bundle_entries(*std::move(made), *jobs, options.without_sources));
    if (!bytes) return fail(bytes.error());
    if (auto done = write_bundle(options.out, *bytes, options.key_file); !done) return fail(done.error());
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (!options.quiet) {
        print(summary(options.out, specs->size(), targets->size(), *jobs, images.stats(), bytes->size(), took.count()));
    }
    return kExitOk;
}

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

Result<int> merge(const MergeOptions& options) {
    Merged merged;
    for (const std::string& path : options.bundles) {
        if (auto added = merged.add(path); !added) return fail(added.error());
    }
    const Result<std::string> bytes = merged.encode();
    if (!bytes) return fail(bytes.error());
    if (auto done = write_bundle(options.out, *bytes, options.key_file); !done) return fail(done.error());
    print(escaped(options.out) + ": " + std::to_string(merged.size()) + " programs; " + size_text(bytes->size()) +
          "\n");
    return kExitOk;
}

/// A whole bundle's bytes in memory: what was checked can't change while the file is written to.
Result<std::string> read_bundle(const std::string& path) {
    const auto file = rt::open_bundle_file(path);
    if (!file) return fail(path + ' ' + file.error());
    auto bytes = (*file)->read(0, (*file)->size());
    if (!bytes) return fail(path + ' ' + bytes.error());
    const auto bundle = rt::Bundle::open(rt::bundle_in_memory(*bytes));
    if (!bundle) return fail(path + ' ' + bundle.error());
    if (auto whole = read_entries(*bundle, path); !whole) return fail(whole.error());
    return *std::move(bytes);
}

Result<int> sign_file(const SignOptions& options) {
    const Result<rt::SecretKey> key = read_key(options.key_file);
    if (!key) return fail(key.error());
    Result<std::string> bytes = read_bundle(options.bundle);
    if (!bytes) return fail(bytes.error());
    if (auto done = sign_bytes(*bytes, *key); !done) return fail(done.error());
    if (auto done = write_file(options.bundle, *bytes); !done) return fail(done.error());
    print(escaped(options.bundle) + ": signed by key " + rt::print_public_key(rt::public_key(*key)) + "\n");
    return kExitOk;
}

}  // namespace

int create_bundle(const CreateOptions& options) {
    return finish(create(options));
}

int merge_bundles(const MergeOptions& options) {
    return finish(merge(options));
}

int sign_bundle(const SignOptions& options) {
    return finish(sign_file(options));
}

}  // namespace kvjit::tool
