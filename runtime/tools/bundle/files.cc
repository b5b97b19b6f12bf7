#include "bundle/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "disk_cache/file_calls.h"
#include "input_file.h"
#include "library_search.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

std::string reason(int error) {
    return std::strerror(error);
}

/// 0 or -errno.
int write_all(int file, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t put = rt::system_calls().write(file, bytes.data(), bytes.size());
        if (put < 0) return static_cast<int>(put);
        bytes.remove_prefix(static_cast<std::size_t>(put));
    }
    return rt::system_calls().sync(file);
}

/// Gives `file` the permissions that the file at `place` has, if there is one. 0 or -errno.
int keep_mode(const std::string& place, int file) {
    struct stat known{};
    if (rt::system_calls().status_of(AT_FDCWD, place.c_str(), &known) != 0) return 0;
    return ::fchmod(file, known.st_mode & 0777) == 0 ? 0 : -errno;
}

}  // namespace

std::string error_text(const gen::Error& error) {
    return std::string(kvjit_status_name(error.status)) + ": " + error.message;
}

Result<rt::Bundle> open_bundle(const std::string& path) {
    auto bytes = rt::open_bundle_file(path);
    if (!bytes) return fail(path + ' ' + bytes.error());
    auto bundle = rt::Bundle::open(*std::move(bytes));
    if (!bundle) return fail(path + ' ' + bundle.error());
    return *std::move(bundle);
}

Result<std::vector<rt::BundleEntry>> read_entries(const rt::Bundle& bundle, const std::string& path) {
    std::vector<rt::BundleEntry> entries;
    for (std::size_t i = 0; i < bundle.size(); ++i) {
        auto entry = rt::read_entry(bundle, i);
        if (!entry) return fail(path + ' ' + entry.error());
        entries.push_back(*std::move(entry));
    }
    return entries;
}

Result<void> write_file(const std::string& path, std::string_view bytes) {
    rt::FileCalls& calls = rt::system_calls();
    const std::string place = rt::real_path(path).value_or(path);
    const std::string temporary = place + ".tmp-" + std::to_string(::getpid());
    const rt::Fd file(calls.open(AT_FDCWD, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0666));
    if (!file.open()) return fail(path + " can't be written: " + reason(-file.get()));
    int error = keep_mode(place, file.get());
    if (error == 0) error = write_all(file.get(), bytes);
    if (error == 0) error = calls.rename(AT_FDCWD, temporary.c_str(), place.c_str());
    if (error == 0) return {};
    calls.remove(AT_FDCWD, temporary.c_str());
    return fail(path + " can't be written: " + reason(-error));
}

Result<rt::SecretKey> read_key(const std::string& path) {
    const Result<std::string> text = read_file(path);
    if (!text) return fail(text.error());
    if (const auto key = rt::parse_secret_key(*text)) return *key;
    return fail(path + " is no private Ed25519 key in PEM, as openssl genpkey -algorithm ed25519 writes it");
}

Result<void> write_bundle(const std::string& path, std::string bytes, const std::optional<std::string>& key_file) {
    if (key_file) {
        const Result<rt::SecretKey> key = read_key(*key_file);
        if (!key) return fail(key.error());
        if (auto done = sign_bytes(bytes, *key); !done) return done;
    }
    return write_file(path, bytes);
}

Result<void> sign_bytes(std::string& bytes, const rt::SecretKey& key) {
    auto header = rt::decode_header(std::string_view(bytes).substr(0, rt::kBundleHeaderBytes), bytes.size());
    if (!header) return fail("what is to be signed " + header.error());
    rt::sign(*header, key);
    bytes.replace(0, rt::kBundleHeaderBytes, rt::encode_header(*header));
    return {};
}

std::string difference(const rt::BundleEntry& one, const rt::BundleEntry& other) {
    std::string parts;
    const auto compare = [&](const char* name, const std::string& a, const std::string& b) {
        if (a != b) parts += (parts.empty() ? "" : ", ") + std::string(name);
    };
    compare("provenance", one.code.provenance, other.code.provenance);
    compare("image", one.code.image, other.code.image);
    compare("source", one.texts.source, other.texts.source);
    compare("log", one.texts.log, other.texts.log);
    return parts;
}

std::string size_text(std::uint64_t bytes) {
    char text[64];
    std::snprintf(text, sizeof text, "%llu bytes (%.1f MB)", static_cast<unsigned long long>(bytes),
                  static_cast<double>(bytes) / 1e6);
    return text;
}

int finish(const Result<int>& result) {
    if (result) return *result;
    complain(result.error());
    return kExitBadInput;
}

}  // namespace kvjit::tool
