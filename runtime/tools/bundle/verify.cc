// `kvjit bundle verify`.
#include <algorithm>
#include <memory>
#include <optional>

#include "bundle/bundle_commands.h"
#include "bundle/files.h"
#include "command/options.h"
#include "command/words.h"
#include "json.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

struct Request {
    std::vector<std::string> bundles;
    std::optional<std::string> key;  // hexadecimal digits; nothing: any signature or none
    bool json = false;
};

/// What is wrong with a bundle that can be read, clause by clause.
std::vector<std::string> problems_of(const rt::Bundle& bundle, const std::optional<rt::PublicKey>& key) {
    std::vector<std::string> problems;
    if (key && bundle.header().key != *key) {
        problems.push_back("is " + signed_by(bundle.header()) + ", not by " + rt::print_public_key(*key));
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

Verdict judge(const std::string& path, const std::optional<rt::PublicKey>& key) {
    auto bytes = rt::open_bundle_file(path);
    if (!bytes) return {path, "", {bytes.error()}, kExitBadInput};
    const auto bundle = rt::Bundle::open(*std::move(bytes));
    if (!bundle) return {path, "", {bundle.error()}, kExitMismatch};
    std::vector<std::string> problems = problems_of(*bundle, key);
    const int code = problems.empty() ? kExitOk : kExitMismatch;
    return {path, number_of(bundle->size(), "whole program") + ", " + signed_by(bundle->header()), std::move(problems),
            code};
}

void print_verdict(const Verdict& verdict) {
    if (verdict.problems.empty()) print(escaped(verdict.path + ": " + verdict.praise) + "\n");
    for (const std::string& problem : verdict.problems) complain(verdict.path + ' ' + problem);
}

Result<int> verify(const Request& request) {
    std::optional<rt::PublicKey> key;
    if (request.key) {
        key = rt::parse_public_key(*request.key);
        if (!key)
            return fail("--key is '" + *request.key +
                        "'; it takes the 64 hexadecimal digits of a public key, not all 0");
    }
    Json json = Json::array();
    int code = kExitOk;
    for (const std::string& path : request.bundles) {
        const Verdict verdict = judge(path, key);
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
    options.json(request->json);
    return [request] { return verify(*request); };
}

}  // namespace

constinit const Command kBundleVerify = {
    .name = "verify",
    .summary = "Read all of bundles and compare every digest",
    .declare = declare,
    .about = "Reads all of each bundle: header, index, every entry's digests, the signature where there is one.",
    .examples =
        "kvjit bundle verify kernels.kvjb\n"
        "kvjit bundle verify kernels.kvjb --key 19bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1\n",
    .status = "0 all are whole, 1 some is not, or is not signed by the key, 2 a file can't be opened"};

}  // namespace kvjit::tool
