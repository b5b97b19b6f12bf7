// `kvjit bundle verify`.
#include <algorithm>
#include <memory>
#include <optional>

#include "bundle/bundle_commands.h"
#include "bundle/entries.h"
#include "bundle/files.h"
#include "bundle/near.h"
#include "bundle/spec_arguments.h"
#include "command/options.h"
#include "command/words.h"
#include "json.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

struct Request {
    std::vector<std::string> bundles;
    std::optional<std::string> key;  // hexadecimal digits; nothing: any signature or none
    SpecArguments needed;            // nothing: whatever the bundles have
    bool json = false;
};

/// What a bundle must have.
struct Needs {
    std::optional<rt::PublicKey> key;
    EntryJobs programs;
};

/// Of a program that the bundle lacks.
std::string lacking(const rt::Bundle& bundle, const std::string& identity, const EntryJob& job) {
    const auto parts = gen::parse_identity(identity);
    const std::string near = parts ? rt::near_programs(bundle, *parts) : "";
    return "lacks " + std::string(job.program.info->label) + " of " + job.spec + " for " + job.target.name() +
           (near.empty() ? "" : "; it " + near);
}

/// What is wrong with a bundle that can be read, clause by clause.
std::vector<std::string> problems_of(const rt::Bundle& bundle, const Needs& needs) {
    std::vector<std::string> problems;
    if (needs.key && bundle.header().key != *needs.key) {
        problems.push_back("is " + signed_by(bundle.header()) + ", not by " + rt::print_public_key(*needs.key));
    }
    for (const auto& [identity, job] : needs.programs.jobs) {
        if (!bundle.find(identity)) problems.push_back(lacking(bundle, identity, job));
    }
    for (std::size_t i = 0; i < bundle.size(); ++i) {
        const auto entry = rt::read_entry(bundle, i);
        if (!entry) problems.push_back(entry.error());
    }
    return problems;
}

struct Verdict {
    std::string path, praise;
    std::vector<std::string> problems;
    int exit_code;
};

Verdict judge(const std::string& path, const Needs& needs) {
    auto bytes = rt::open_bundle_file(path);
    if (!bytes) return {path, "", {bytes.error()}, kExitBadInput};
    const auto bundle = rt::Bundle::open(*std::move(bytes));
    if (!bundle) return {path, "", {bundle.error()}, kExitMismatch};
    std::vector<std::string> problems = problems_of(*bundle, needs);
    const int code = problems.empty() ? kExitOk : kExitMismatch;
    const std::size_t needed = needs.programs.jobs.size();
    const std::string all = needed == 0 ? "" : ", all " + std::to_string(needed) + " that are needed";
    return {path, number_of(bundle->size(), "whole program") + all + ", " + signed_by(bundle->header()),
            std::move(problems), code};
}

void print_verdict(const Verdict& verdict) {
    if (verdict.problems.empty()) print(escaped(verdict.path + ": " + verdict.praise) + "\n");
    for (const std::string& problem : verdict.problems) complain(verdict.path + ' ' + problem);
}

Result<EntryJobs> needed_programs(const SpecArguments& needed) {
    if (needed.files.empty() && needed.targets.empty()) return EntryJobs();
    if (needed.files.empty() || needed.targets.empty()) {
        return fail(needed.files.empty() ? "--targets needs --specs: what for those targets a bundle must have"
                                         : "--specs needs --targets: for which a bundle must have them");
    }
    const Result<std::vector<gen::KernelSpec>> specs = needed.read_specs();
    if (!specs) return fail(specs.error());
    const Result<std::vector<std::string>> targets = needed.target_names();
    if (!targets) return fail(targets.error());
    Result<EntryJobs> programs = plan_entries(*specs, *targets);
    for (const std::string& each : programs ? programs->left_out : std::vector<std::string>()) {
        complain("left out: " + each);
    }
    return programs;
}

Result<Needs> needs_of(const Request& request) {
    Needs needs;
    if (request.key) {
        needs.key = rt::parse_public_key(*request.key);
        if (!needs.key)
            return fail("--key is '" + *request.key +
                        "'; it takes the 64 hexadecimal digits of a public key, not all 0");
    }
    Result<EntryJobs> programs = needed_programs(request.needed);
    if (!programs) return fail(programs.error());
    needs.programs = *std::move(programs);
    return needs;
}

Result<int> verify(const Request& request) {
    const Result<Needs> needs = needs_of(request);
    if (!needs) return fail(needs.error());
    Json json = Json::array();
    int code = kExitOk;
    for (const std::string& path : request.bundles) {
        const Verdict verdict = judge(path, *needs);
        code = std::max(code, verdict.exit_code);
        json.push_back({{"file", path}, {"good", verdict.problems.empty()}, {"problems", verdict.problems}});
        if (!request.json) print_verdict(verdict);
    }
    if (request.json) print(dump(json));
    return code;
}

Action declare(Options& options) {
    auto request = std::make_shared<Request>();
    options.text("BUNDLE", request->bundles, kFile, "Bundles")->required();
    options.text("--key", request->key, {"KEY"}, "The public key that must have signed them: 64 hexadecimal digits");
    request->needed.declare(options, false);
    options.json(request->json);
    return [request] { return verify(*request); };
}

}  // namespace

constinit const Command kBundleVerify = {
    .name = "verify",
    .summary = "Read all of bundles and compare every digest",
    .declare = declare,
    .about =
        "Reads all of each bundle: header, index, every entry's digests, the signature where there is one. With "
        "--specs "
        "and --targets each bundle must have every program of those specs for those targets, as this version of kvjit "
        "asks for them: the check before a release, of what bundle create was given or of what KVJIT_TRACE_SPECS "
        "wrote.",
    .examples =
        "kvjit bundle verify kernels.kvjb\n"
        "kvjit bundle verify kernels.kvjb --specs specs.txt --targets x86-64-v3,x86-64-v4\n"
        "kvjit bundle verify kernels.kvjb --key 19bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1\n",
    .status =
        "0 all are whole, 1 some is not, or is not signed by the key, or lacks a program, 2 a file can't be opened"};

}  // namespace kvjit::tool
