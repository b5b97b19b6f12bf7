// `kvjit bundle extract`.
#include <cctype>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include "bundle/bundle_commands.h"
#include "bundle/files.h"
#include "command/options.h"
#include "command/words.h"
#include "generator/identity.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

struct Request {
    std::string bundle;
    std::string folder = ".";
    std::string match;  // part of the identity; "": all
};

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

Result<int> extract(const Request& request) {
    const Result<rt::Bundle> bundle = open_bundle(request.bundle);
    if (!bundle) return fail(bundle.error());
    std::error_code error;
    std::filesystem::create_directories(request.folder, error);
    if (error) return fail(request.folder + " can't be made: " + error.message());
    int programs = 0, files = 0;
    for (std::size_t i = 0; i < bundle->size(); ++i) {
        const auto identity = bundle->identity(i);
        if (identity && identity->find(request.match) == identity->npos) continue;
        const auto entry = rt::read_entry(*bundle, i);
        if (!entry) return fail(request.bundle + ' ' + entry.error());
        const Result<int> written = write_entry(*entry, request.folder);
        if (!written) return fail(written.error());
        ++programs;
        files += *written;
    }
    if (programs == 0) return fail("no identity in " + request.bundle + " has '" + request.match + "' in it");
    print(escaped(request.folder) + ": " + number_of(programs, "program") + ", " + number_of(files, "file") + "\n");
    return kExitOk;
}

Action declare(Options& options) {
    auto request = std::make_shared<Request>();
    options.text("BUNDLE", request->bundle, kFile, "A bundle")->required();
    options.text("--to", request->folder, kFolder, "Folder to write to");
    options.text("--match", request->match, {"TEXT"}, "Only programs whose identity has this text in it");
    return [request] { return extract(*request); };
}

}  // namespace

constinit const Command kBundleExtract = {
    .name = "extract",
    .summary = "Write a bundle's programs to files",
    .declare = declare,
    .about =
        "For each program an object or a cubin, its source, its compiler's log and its names: "
        "NAME-DIGEST.TARGET.o, .cc, .log, .txt.",
    .examples =
        "kvjit bundle extract kernels.kvjb --to parts\n"
        "kvjit bundle extract kernels.kvjb --to parts --match 'attend_decode;'\n",
    .status =
        "0 written, 2 bad arguments, a bundle that is not whole, no such program, or a file that can't be written"};

}  // namespace kvjit::tool
