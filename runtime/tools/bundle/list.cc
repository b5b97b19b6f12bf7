// `kvjit bundle list`.
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "bundle/bundle_commands.h"
#include "bundle/files.h"
#include "command/options.h"
#include "command/words.h"
#include "generator/identity.h"
#include "generator/program.h"
#include "json.h"
#include "table.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

struct Request {
    std::string bundle;
    bool json = false;
};

std::vector<std::string> row_of(const rt::BundleRecord& record, const rt::BundleCode& code) {
    const auto parts = gen::parse_identity(code.identity);
    const std::string program = parts ? std::string(gen::label_of(parts->program)) + '/' + parts->variant : "?";
    const std::string constants = parts ? constants_text(*parts) : code.identity;
    return {target_label(code.target), program, std::to_string(record.image_bytes), constants};
}

Json row_json(const rt::BundleRecord& record, const rt::BundleCode& code) {
    return {{"identity", code.identity},
            {"target", code.target},
            {"provenance", code.provenance},
            {"digest", rt::digest_hex(record.code)},
            {"offset", record.offset},
            {"image_bytes", record.image_bytes},
            {"source_bytes", record.source_bytes},
            {"log_bytes", record.log_bytes}};
}

Json bundle_json(const std::string& path, const rt::BundleHeader& header) {
    return {{"file", path},
            {"format", rt::kBundleVersion},
            {"abi", header.abi},
            {"bytes", header.bytes},
            {"digest", rt::digest_hex(header.digest)},
            {"signed_by", header.is_signed() ? Json(rt::print_public_key(header.key)) : Json()}};
}

Result<int> list(const Request& request) {
    const Result<rt::Bundle> bundle = open_bundle(request.bundle);
    if (!bundle) return fail(bundle.error());
    const rt::BundleHeader& header = bundle->header();
    Json json = bundle_json(request.bundle, header);
    json["entries"] = Json::array();
    std::set<std::vector<std::string>> rows;  // sorted: for people
    int exit_code = kExitOk;
    for (std::size_t i = 0; i < bundle->size(); ++i) {
        const auto code = bundle->code(i);
        if (!code) {
            complain(request.bundle + ' ' + code.error());
            json["entries"].push_back({{"damage", code.error()}});
            exit_code = kExitMismatch;
            continue;
        }
        rows.insert(row_of(bundle->record(i), *code));
        json["entries"].push_back(row_json(bundle->record(i), *code));
    }
    if (request.json) {
        print(dump(json));
    } else {
        std::vector<std::vector<std::string>> table = {{"target", "program", "image", "constants"}};
        table.insert(table.end(), rows.begin(), rows.end());
        print(escaped_lines(table_text(table) + request.bundle + ": " + number_of(bundle->size(), "program") + ", " +
                            size_text(header.bytes) + ", kernel ABI " + std::to_string(header.abi) + ", " +
                            signed_by(header) + "\n"));
    }
    return exit_code;
}

Action declare(Options& options) {
    auto request = std::make_shared<Request>();
    options.text("BUNDLE", request->bundle, kFile, "A bundle")->required();
    options.json(request->json);
    return [request] { return list(*request); };
}

}  // namespace

constinit const Command kBundleList = {
    .name = "list",
    .summary = "Show what a bundle holds",
    .declare = declare,
    .about =
        "A line for each program: target, program/variant, bytes of its image, constants. --json has all that is "
        "known.",
    .examples =
        "kvjit bundle list kernels.kvjb | grep decode\n"
        "kvjit bundle list kernels.kvjb --json\n",
    .status =
        "0 listed, 1 the code of an entry is damaged, which is said, and the others are listed, 2 bad arguments, or a "
        "file that "
        "can't be read or is no bundle"};

}  // namespace kvjit::tool
