// `kvjit bundle sign`.
#include <memory>

#include "bundle/bundle_commands.h"
#include "bundle/files.h"
#include "command/options.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

struct Request {
    std::string bundle;
    std::string key_file;
};

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

Result<int> sign_file(const Request& request) {
    const Result<rt::SecretKey> key = read_key(request.key_file);
    if (!key) return fail(key.error());
    Result<std::string> bytes = read_bundle(request.bundle);
    if (!bytes) return fail(bytes.error());
    if (auto done = sign_bytes(*bytes, *key); !done) return fail(done.error());
    if (auto done = write_file(request.bundle, *bytes); !done) return fail(done.error());
    print(escaped(request.bundle) + ": signed by key " + rt::print_public_key(rt::public_key(*key)) + "\n");
    return kExitOk;
}

Action declare(Options& options) {
    auto request = std::make_shared<Request>();
    options.text("BUNDLE", request->bundle, kFile, "A bundle")->required();
    options.text("--key", request->key_file, kFile, kSignHelp)->required();
    return [request] { return sign_file(*request); };
}

}  // namespace

constinit const Command kBundleSign = {
    .name = "sign",
    .summary = "Sign a bundle in place",
    .declare = declare,
    .about =
        "Replaces the signature in the file, and prints the public key: what the engine's option bundle_key takes.",
    .examples =
        "openssl genpkey -algorithm ed25519 -out private.pem\n"
        "kvjit bundle sign kernels.kvjb --key private.pem\n",
    .status = "0 signed, 2 bad arguments, a key that is none, or a bundle that is not whole: nothing is written"};

}  // namespace kvjit::tool
