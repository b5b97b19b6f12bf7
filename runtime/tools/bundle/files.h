// Bundles and keys as files.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bundle/bundle.h"
#include "bundle/encode.h"
#include "bundle/signature.h"
#include "generator/error.h"
#include "result.h"

namespace kvjit::tool {

/// "KVJIT_BAD_SPEC: head_dim is 12; ..."
std::string error_text(const gen::Error& error);

Result<rt::Bundle> open_bundle(const std::string& path);
Result<std::vector<rt::BundleEntry>> read_entries(const rt::Bundle& bundle, const std::string& path);

/// Under another name, then renamed: who reads `path` sees the old file or all of the new one. A link leads to the new
/// one, too, which has the old one's permissions. What is no regular file, a pipe or a device, is written to.
Result<void> write_file(const std::string& path, std::string_view bytes);
/// Whether write_file can be expected to write `path`: it asks for permissions, and writes nothing.
Result<void> check_writable(const std::string& path);

/// Of a file that `openssl genpkey -algorithm ed25519` wrote.
Result<rt::SecretKey> read_key(const std::string& path);

/// The bundle's bytes, signed where there is a key, to `path`.
Result<void> write_bundle(const std::string& path, std::string bytes, const std::optional<std::string>& key_file);
/// Puts a signature into a bundle's bytes.
Result<void> sign_bytes(std::string& bytes, const rt::SecretKey& key);

/// What differs between two entries of one identity: "provenance, image"; "" if nothing does.
std::string difference(const rt::BundleEntry& one, const rt::BundleEntry& other);

/// "1234567 bytes (1.2 MB)"
std::string size_text(std::uint64_t bytes);

/// The exit status of what printed its results itself: a failure is told.
int finish(const Result<int>& result);

}  // namespace kvjit::tool
