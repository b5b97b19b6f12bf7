// `kvjit bundle create`.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>

#include "bundle/bundle_commands.h"
#include "bundle/compiler_path.h"
#include "bundle/entries.h"
#include "bundle/files.h"
#include "bundle/spec_arguments.h"
#include "command/options.h"
#include "command/words.h"
#include "common/abi.h"
#include "disk_cache/disk_store.h"
#include "environment.h"
#include "terminal.h"
#include "usable_cores.h"

namespace kvjit::tool {
namespace {

struct Request {
    std::string out;
    SpecArguments what;
    std::optional<std::string> cache_dir;  // nothing: kvjit's own
    std::optional<std::string> key_file;   // nothing: not signed
    int jobs = 0;                          // 0: as many as cores
    bool without_sources = false;
    bool quiet = false;
};

std::unique_ptr<rt::Cache> open_cache(const std::optional<std::string>& folder, const rt::Log& log) {
    if (folder && folder->empty()) return nullptr;
    rt::DiskStoreOptions disk;
    disk.folder = folder;
    disk.max_bytes = rt::cache_max_bytes_of_environment();
    disk.log = log;
    return rt::open_disk_store(disk);
}

rt::ImagesOptions images_options(const Request& request) {
    rt::ImagesOptions images;
    const auto warn = [](kvjit_log_level, const std::string& message) { complain("warning: " + message); };
    const std::optional<kvjit_log_level> level = rt::log_level_of_environment();
    images.log = level ? rt::standard_error_log(level) : rt::Log(warn, KVJIT_LOG_WARNING);
    rt::report_environment(images.log);
    const std::string templates = rt::environment_text(rt::Variable::kTemplateDir).value_or("");
    images.backends = rt::make_backends({.compiler = compiler_path(), .templates = templates});
    images.disk = open_cache(request.cache_dir, images.log);
    images.templates = gen::templates_of(templates);
    return images;
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
                                                      const Request& request) {
    Progress progress(static_cast<std::int64_t>(jobs.jobs.size()));
    return make_entries(images, jobs, thread_count(request.jobs), [&](const EntryJob& job) {
        if (!request.quiet) {
            progress.advance(std::string(job.program.info->label) + " for " + job.target.name());
        }
    });
}

std::string summary(const std::string& out, std::size_t specs, std::size_t targets, const EntryJobs& jobs,
                    const kvjit_engine_stats& stats, std::uint64_t bytes, double seconds) {
    char took[32];
    std::snprintf(took, sizeof took, ", %.1f s\n", seconds);
    return escaped(out) + ": " + number_of(specs, "spec") + ", " + number_of(targets, "target") + ", " +
           number_of(std::ssize(jobs.jobs), "program") + "; " + std::to_string(stats.compiles) + " compiled, " +
           std::to_string(stats.disk_hits) + " from the cache; " + size_text(bytes) + took;
}

/// What would fail at the end fails before minutes of compiling.
Result<void> check_output(const Request& request) {
    if (request.key_file) {
        if (const auto key = read_key(*request.key_file); !key) return fail(key.error());
    }
    return check_writable(request.out);
}

Result<int> create(const Request& request) {
    const auto start = std::chrono::steady_clock::now();
    if (auto soon = check_output(request); !soon) return fail(soon.error());
    const Result<std::vector<gen::KernelSpec>> specs = request.what.read_specs();
    if (!specs) return fail(specs.error());
    const Result<std::vector<std::string>> targets = request.what.target_names();
    if (!targets) return fail(targets.error());
    const Result<EntryJobs> jobs = plan_entries(*specs, *targets);
    if (!jobs) return fail(jobs.error());
    for (const std::string& each : jobs->left_out) complain("left out: " + each);
    rt::Images images(images_options(request));
    Result<std::vector<rt::MadeEntry>> made = make_with_progress(images, *jobs, request);
    if (!made) return fail(made.error());
    const auto bytes =
        rt::encode_bundle(abi::kKernelAbi, bundle_entries(*std::move(made), *jobs, request.without_sources));
    if (!bytes) return fail(bytes.error());
    if (auto done = write_bundle(request.out, *bytes, request.key_file); !done) return fail(done.error());
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (!request.quiet) {
        print(summary(request.out, specs->size(), targets->size(), *jobs, images.stats(), bytes->size(), took.count()));
    }
    return kExitOk;
}

Action declare(Options& options) {
    auto request = std::make_shared<Request>();
    options.text("OUT", request->out, kFile, "The bundle to write (*.kvjb)")->required();
    options.text("SPEC", request->what.specs, kSpec, "field=value pairs, separated by commas: one spec a word");
    request->what.declare(options, true);
    options.number("-j,--jobs", request->jobs, 0, 1024, "Compiles at once; 0: one for each core that it may run on");
    options.cache_folder(request->cache_dir);
    options.text("--key", request->key_file, kFile, kSignHelp);
    options.flag("--no-sources", request->without_sources, "Leave out sources and compilers' logs");
    options.flag("--quiet,-q", request->quiet, "Print nothing where all is well");
    return [request] { return create(*request); };
}

}  // namespace

constinit const Command kBundleCreate = {
    .name = "create",
    .summary = "Compile all programs of specs for targets into a bundle",
    .declare = declare,
    .about =
        "A file of specs has one a line; # begins a comment, and braces hold several values or a range:\n\n"
        "    # Llama 3 8B, int8 cache in pages\n"
        "    op=MultiHeadCacheAttention,head_dim=128,group=4,quant_bit=8,cache_mode=page_table,layout=L2HTD\n"
        "    op=Merge head_dim={64..256..64}\n\n"
        "docs/ahead.md has the rules. What KVJIT_TRACE_SPECS wrote is such a file. kvjit help inspect has the fields "
        "of "
        "a spec. The error of a kernel that a bundle lacks names the line to add.\n\n"
        "Targets are those that will run it, not this machine: no GPU is needed for sm_80, only NVRTC. A program that "
        "several specs share is compiled and stored once. What the disk cache has is not compiled again. The same "
        "specs, targets, compiler and kvjit make the same bytes, wherever and in whichever order.",
    .examples =
        "kvjit bundle create kernels.kvjb --specs specs.txt --targets x86-64-v3,x86-64-v4\n"
        "kvjit bundle create one.kvjb op=Merge,head_dim=64 --targets host\n"
        "kvjit bundle create gpu.kvjb --specs specs.txt --targets sm_80,sm_90a -j 8 --key private.pem\n",
    .status = "0 written, 2 bad arguments, specs or targets, or a program that doesn't compile: nothing is written"};

}  // namespace kvjit::tool
