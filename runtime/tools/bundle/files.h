// Bundles and keys as files.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bundle/bundle.h"
#include "bundle/encode.h"
#include "bundle/signature.h"
#include "generator/error.h"
#include "generator/identity.h"
#include "result.h"

namespace kvjit::tool {

/// "KVJIT_BAD_SPEC: head_dim is 12; ..."
std::string error_text(const gen::Error& error);

Result<rt::Bundle> open_bundle(const std::string& path);
Result<std::vector<rt::BundleEntry>> read_entries(const rt::Bundle& bundle, const std::string& path);

/// Writes under another name, then renames: readers of `path` see the old file or the whole new one, which has the old
/// one's permissions; where there is none, `mode` and the umask decide. A link is followed. Pipes and devices are
/// written to directly.
Result<void> write_file(const std::string& path, std::string_view bytes, mode_t mode = 0666);
/// Whether write_file can probably write `path`: checks permissions, and writes nothing.
Result<void> check_writable(const std::string& path);

/// Reads a key from a file that `openssl genpkey -algorithm ed25519` wrote.
Result<rt::SecretKey> read_key(const std::string& path);

/// Writes the bundle's bytes to `path`, signed if there is a key.
Result<void> write_bundle(const std::string& path, std::string bytes, const std::optional<std::string>& key_file);
/// Puts a signature into a bundle's bytes.
Result<void> sign_bytes(std::string& bytes, const rt::SecretKey& key);

/// What differs between two entries of one identity: "provenance, image"; "" if nothing does.
std::string difference(const rt::BundleEntry& one, const rt::BundleEntry& other);

/// "1234567 bytes (1.2 MB)"
std::string size_text(std::uint64_t bytes);

/// "kHeadDim=64;T1=f16_t"
std::string constants_text(const gen::Identity& identity);
/// "signed by key ...", or "not signed"
std::string signed_by(const rt::BundleHeader& header);
/// "x86-64-v3" of "x86_64-unknown-linux-gnu:x86-64-v3"; an emulated target keeps its prefix.
std::string target_name(const std::string& text);
/// The same for people: "x86-64-v4 and 13 more features" where the target has a list of them.
std::string target_label(const std::string& text);

}  // namespace kvjit::tool
