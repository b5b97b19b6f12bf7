// `kvjit bundle diff`.
#include <map>
#include <memory>

#include "bundle/bundle_commands.h"
#include "bundle/files.h"
#include "command/options.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

struct Request {
    std::string one, other;
};

Result<std::map<std::string, rt::BundleEntry>> by_identity(const std::string& path) {
    const Result<rt::Bundle> bundle = open_bundle(path);
    if (!bundle) return fail(bundle.error());
    Result<std::vector<rt::BundleEntry>> entries = read_entries(*bundle, path);
    if (!entries) return fail(entries.error());
    std::map<std::string, rt::BundleEntry> found;
    for (rt::BundleEntry& entry : *entries) found.emplace(entry.code.identity, std::move(entry));
    return found;
}

Result<int> diff(const Request& request) {
    const auto one = by_identity(request.one), other = by_identity(request.other);
    if (!one) return fail(one.error());
    if (!other) return fail(other.error());
    std::string text;
    for (const auto& [identity, entry] : *one) {
        const auto found = other->find(identity);
        const std::string parts = found != other->end() ? difference(entry, found->second) : "";
        if (found == other->end()) text += "- " + identity + "\n";
        if (!parts.empty()) text += "~ " + identity + " (" + parts + ")\n";
    }
    for (const auto& [identity, entry] : *other) {
        if (!one->contains(identity)) text += "+ " + identity + "\n";
    }
    print(escaped_lines(text));
    return text.empty() ? kExitOk : kExitMismatch;
}

Action declare(Options& options) {
    auto request = std::make_shared<Request>();
    options.text("ONE", request->one, kFile, "A bundle")->required();
    options.text("OTHER", request->other, kFile, "Another one")->required();
    return [request] { return diff(*request); };
}

}  // namespace

constinit const Command kBundleDiff = {
    .name = "diff",
    .summary = "Compare two bundles",
    .declare = declare,
    .about =
        "A line for each program that only ONE has (-), only OTHER has (+), or that differs (~), with what differs.",
    .examples = "kvjit bundle diff yesterday.kvjb today.kvjb\n",
    .status = "0 the same programs and code, 1 not, 2 something could not be read"};

}  // namespace kvjit::tool
