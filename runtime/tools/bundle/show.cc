// `kvjit bundle list`, `verify`, `extract`, `diff`: the commands that read bundles.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "bundle/files.h"
#include "bundle/options.h"
#include "generator/identity.h"
#include "generator/program.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

using Json = nlohmann::ordered_json;

/// JSON is UTF-8; a file may hold anything.
std::string dump(const Json& json) {
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string signed_by(const rt::BundleHeader& header) {
    return header.is_signed() ? "signed by key " + rt::print_public_key(header.key) : "not signed";
}

/// "x86-64-v3" of "x86_64-unknown-linux-gnu:x86-64-v3"; an emulated target keeps its prefix.
std::string target_name(const std::string& text) {
    const std::string name = text.substr(text.rfind(':') + 1);
    return text.starts_with("cuda-emulated:") ? "cuda-emulated:" + name : name;
}

std::string constants_text(const gen::Identity& identity) {
    std::string text;
    for (const auto& [name, value] : identity.constants) text += (text.empty() ? "" : ";") + name + "=" + value;
    return text;
}

std::string row_text(const rt::BundleRecord& record, const rt::BundleCode& code) {
    const auto parts = gen::parse_identity(code.identity);
    const std::string program = parts ? std::string(gen::label_of(parts->program)) + '/' + parts->variant : "?";
    const std::string constants = parts ? constants_text(*parts) : code.identity;
    const auto wide = [](std::string text, std::size_t width) {
        if (text.size() < width) text.resize(width, ' ');
        return text + "  ";
    };
    char bytes[32];
    std::snprintf(bytes, sizeof bytes, "%10llu  ", static_cast<unsigned long long>(record.image_bytes));
    return wide(target_name(code.target), 12) + wide(program, 20) + bytes + constants + "\n";
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

Result<int> list(const ListOptions& options) {
    const Result<rt::Bundle> bundle = open_bundle(options.bundle);
    if (!bundle) return fail(bundle.error());
    const rt::BundleHeader& header = bundle->header();
    Json json = bundle_json(options.bundle, header);
    json["entries"] = Json::array();
    std::set<std::string> rows;  // sorted: for people
    int exit_code = kExitOk;
    for (std::size_t i = 0; i < bundle->size(); ++i) {
        const auto code = bundle->code(i);
        if (!code) {
            complain(options.bundle + ' ' + code.error());
            json["entries"].push_back({{"damage", code.error()}});
            exit_code = kExitMismatch;
            continue;
        }
        rows.insert(row_text(bundle->record(i), *code));
        json["entries"].push_back(row_json(bundle->record(i), *code));
    }
    if (options.json) {
        print(dump(json));
    } else {
        std::string table = "target        program                    image  constants\n";
        for (const std::string& row : rows) table += row;
        print(escaped_lines(table + options.bundle + ": " + std::to_string(bundle->size()) + " programs, " +
                            size_text(header.bytes) + ", kernel ABI " + std::to_string(header.abi) + ", " +
                            signed_by(header) + "\n"));
    }
    return exit_code;
}

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
    return {path, std::to_string(bundle->size()) + " programs are whole, " + signed_by(bundle->header()),
            std::move(problems), code};
}

void print_verdict(const Verdict& verdict) {
    if (verdict.problems.empty()) print(escaped(verdict.path + ": " + verdict.praise) + "\n");
    for (const std::string& problem : verdict.problems) complain(verdict.path + ' ' + problem);
}

Result<int> verify(const VerifyOptions& options) {
    std::optional<rt::PublicKey> key;
    if (options.key) {
        key = rt::parse_public_key(*options.key);
        if (!key) return fail("--key is '" + *options.key + "'; it takes the 64 hexadecimal digits of a public key");
    }
    Json json = Json::array();
    int code = kExitOk;
    for (const std::string& path : options.bundles) {
        const Verdict verdict = judge(path, key);
        code = std::max(code, verdict.exit_code);
        json.push_back({{"file", path}, {"good", verdict.problems.empty()}, {"problems", verdict.problems}});
        if (!options.json) print_verdict(verdict);
    }
    if (options.json) print(dump(json));
    return code;
}

/// The prefix of an entry's file names: "attend_decode-4f1c09d2.x86-64-v3". What comes from the bundle is checked.
std::string file_stem(const rt::BundleCode& code) {
    const auto parts = gen::parse_identity(code.identity);
    std::string stem = parts ? parts->program : "program";
    stem += '-' + rt::digest_hex(code.identity).substr(0, 8) + '.' + target_name(code.target);
    for (char& c : stem) {
        const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) || std::strchr("-_.+", c) != nullptr;
        if (!is_plain || c == '\0') c = '_';
    }
    return stem;
}

Result<int> write_entry(const rt::BundleEntry& entry, const std::string& folder) {
    const bool is_cuda = entry.code.target.starts_with("nvptx64");
    const std::string stem = folder + '/' + file_stem(entry.code);
    const std::pair<const char*, std::string> files[] = {
        {is_cuda ? ".cubin" : ".o", entry.code.image},
        {is_cuda ? ".cu" : ".cc", entry.texts.source},
        {".log", entry.texts.log},
        {".txt", "identity: " + entry.code.identity + "\nprovenance: " + entry.code.provenance + "\n"}};
    int written = 0;
    for (const auto& [suffix, bytes] : files) {
        if (bytes.empty()) continue;
        if (auto done = write_file(stem + suffix, bytes); !done) return fail(done.error());
        ++written;
    }
    return written;
}

Result<int> extract(const ExtractOptions& options) {
    const Result<rt::Bundle> bundle = open_bundle(options.bundle);
    if (!bundle) return fail(bundle.error());
    std::error_code error;
    std::filesystem::create_directories(options.folder, error);
    if (error) return fail(options.folder + " can't be made: " + error.message());
    int programs = 0, files = 0;
    for (std::size_t i = 0; i < bundle->size(); ++i) {
        const auto identity = bundle->identity(i);
        if (identity && identity->find(options.match) == identity->npos) continue;
        const auto entry = rt::read_entry(*bundle, i);
        if (!entry) return fail(options.bundle + ' ' + entry.error());
        const Result<int> written = write_entry(*entry, options.folder);
        if (!written) return fail(written.error());
        ++programs;
        files += *written;
    }
    if (programs == 0) return fail("no identity in " + options.bundle + " has '" + options.match + "' in it");
    print(escaped(options.folder) + ": " + std::to_string(programs) + " programs, " + std::to_string(files) +
          " files\n");
    return kExitOk;
}

Result<std::map<std::string, rt::BundleEntry>> by_identity(const std::string& path) {
    const Result<rt::Bundle> bundle = open_bundle(path);
    if (!bundle) return fail(bundle.error());
    Result<std::vector<rt::BundleEntry>> entries = read_entries(*bundle, path);
    if (!entries) return fail(entries.error());
    std::map<std::string, rt::BundleEntry> found;
    for (rt::BundleEntry& entry : *entries) found.emplace(entry.code.identity, std::move(entry));
    return found;
}

Result<int> diff(const DiffOptions& options) {
    const auto one = by_identity(options.one), other = by_identity(options.other);
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

}  // namespace

int list_bundle(const ListOptions& options) {
    return finish(list(options));
}

int verify_bundles(const VerifyOptions& options) {
    return finish(verify(options));
}

int extract_bundle(const ExtractOptions& options) {
    return finish(extract(options));
}

int diff_bundles(const DiffOptions& options) {
    return finish(diff(options));
}

}  // namespace kvjit::tool
