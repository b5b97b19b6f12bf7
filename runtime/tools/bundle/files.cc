#include "bundle/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "command/words.h"
#include "disk_cache/file_calls.h"
#include "input_file.h"
#include "library_search.h"
#include "terminal.h"

namespace kvjit::tool {
namespace {

constexpr std::size_t kMaxKeyBytes = std::size_t{1} << 20;

std::string reason(int error) {
    return std::strerror(error);
}

/// Blocks signals that would end the process while it lives, so that no half-written file remains.
class SignalsHeld {
public:
    SignalsHeld() {
        sigset_t ending;
        sigemptyset(&ending);
        for (const int signal : {SIGHUP, SIGINT, SIGTERM}) sigaddset(&ending, signal);
        pthread_sigmask(SIG_BLOCK, &ending, &before_);
    }
    ~SignalsHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsHeld(const SignalsHeld&) = delete;
    SignalsHeld& operator=(const SignalsHeld&) = delete;

private:
    sigset_t before_;
};

/// Creates a file beside `place` and stores its name in `name`. A killed process may have left a file of the same
/// number.
rt::Fd open_beside(const std::string& place, mode_t mode, std::string& name) {
    int file = -EEXIST;
    for (int turn = 0; file == -EEXIST && turn < 100; ++turn) {
        name = place + ".tmp-" + std::to_string(::getpid()) + (turn == 0 ? "" : "-" + std::to_string(turn));
        file = rt::system_calls().open(AT_FDCWD, name.c_str(), O_WRONLY | O_CREAT | O_EXCL, mode);
    }
    return rt::Fd(file);
}

std::string folder_of(const std::filesystem::path& place) {
    return place.has_parent_path() ? place.parent_path().string() : ".";
}

/// So that the file's name survives a crash, too. Returns 0 or -errno.
int sync_folder_of(const std::string& place) {
    rt::FileCalls& calls = rt::system_calls();
    const rt::Fd folder(calls.open(AT_FDCWD, folder_of(place).c_str(), O_RDONLY | O_DIRECTORY, 0));
    // A folder may be one to write to, not to read, or of a file system that syncs none.
    const int error = folder.open() ? calls.sync(folder.get()) : 0;
    return error == -EINVAL ? 0 : error;
}

/// Replaces the file at `place` and keeps its permissions, `kept` (0: there is none, and `mode` counts). Returns 0 or
/// -errno.
int replace(const std::string& place, mode_t kept, mode_t mode, std::string_view bytes) {
    rt::FileCalls& calls = rt::system_calls();
    const SignalsHeld held;
    std::string temporary;
    const rt::Fd file = open_beside(place, mode, temporary);
    if (!file.open()) return file.get();
    int error = kept != 0 && ::fchmod(file.get(), kept & 0777) != 0 ? -errno : 0;
    if (error == 0) error = rt::write_all(calls, file.get(), bytes);
    if (error == 0) error = calls.sync(file.get());
    if (error == 0) error = calls.rename(AT_FDCWD, temporary.c_str(), place.c_str());
    if (error != 0) calls.remove(AT_FDCWD, temporary.c_str());
    return error != 0 ? error : sync_folder_of(place);
}

/// Writes into a pipe, a terminal or a device, or behind what standard output has. Returns 0 or -errno.
int write_into(const std::string& path, std::string_view bytes) {
    rt::FileCalls& calls = rt::system_calls();
    const rt::Fd file(calls.open(AT_FDCWD, path.c_str(), O_WRONLY | O_APPEND, 0));
    return file.open() ? rt::write_all(calls, file.get(), bytes) : file.get();
}

/// What a path leads to, links followed.
struct Known {
    bool is_written_into;  // not replaced
    bool is_lost;          // a link that leads to nothing
    mode_t mode;           // 0: there is none
};

Known known_file(const std::string& path) {
    struct stat known{}, link{};
    const bool is_there = ::stat(path.c_str(), &known) == 0;
    const bool is_lost = !is_there && rt::system_calls().status_of(AT_FDCWD, path.c_str(), &link) == 0;
    // /dev/stdout may lead to a file that a shell has opened: that one is meant, not another in its place.
    const bool is_system = path.starts_with("/dev/") || path.starts_with("/proc/");
    return {is_there && (is_system || !S_ISREG(known.st_mode)), is_lost, known.st_mode};
}

std::unexpected<std::string> not_writable(const std::string& path, const std::string& why) {
    return fail(path + " can't be written: " + why);
}

constexpr const char* kLost = "it is a link that leads to no file";

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

Result<void> write_file(const std::string& path, std::string_view bytes, mode_t mode) {
    const Known known = known_file(path);
    if (known.is_lost) return not_writable(path, kLost);
    const int error = known.is_written_into ? write_into(path, bytes)
                                            : replace(rt::real_path(path).value_or(path), known.mode, mode, bytes);
    if (error == 0) return {};
    return not_writable(path, reason(-error));
}

Result<void> check_writable(const std::string& path) {
    const Known known = known_file(path);
    if (known.is_lost) return not_writable(path, kLost);
    if (S_ISDIR(known.mode)) return not_writable(path, reason(EISDIR));
    const std::string folder = folder_of(rt::real_path(path).value_or(path));
    const bool may =
        known.is_written_into ? ::access(path.c_str(), W_OK) == 0 : ::access(folder.c_str(), W_OK | X_OK) == 0;
    return may ? Result<void>() : not_writable(path, reason(errno));
}

Result<rt::SecretKey> read_key(const std::string& path) {
    const Result<std::string> text = read_file(path, kMaxKeyBytes);
    if (!text) return fail(text.error());
    if (const auto key = rt::parse_secret_key(*text)) return *key;
    if (text->contains("BEGIN ENCRYPTED PRIVATE KEY")) {
        return fail(path + " is encrypted; kvjit reads keys without a passphrase, as openssl pkey writes them");
    }
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

std::string constants_text(const gen::Identity& identity) {
    std::string text;
    for (const auto& [name, value] : identity.constants) text += (text.empty() ? "" : ";") + name + "=" + value;
    return text;
}

std::string signed_by(const rt::BundleHeader& header) {
    return header.is_signed() ? "signed by key " + rt::print_public_key(header.key) : "not signed";
}

std::string target_name(const std::string& text) {
    const std::string name = text.substr(text.rfind(':') + 1);
    return text.starts_with("cuda-emulated:") ? "cuda-emulated:" + name : name;
}

std::string target_label(const std::string& text) {
    const std::string name = target_name(text), level = name.substr(0, name.find('+'));
    const auto further = static_cast<std::size_t>(std::ranges::count(name, '+'));
    return further == 0 ? level : level + " and " + number_of(further, "more feature");
}

}  // namespace kvjit::tool
