// A bundle's Ed25519 signature of its digest, which identifies the whole content.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "bundle/format.h"

namespace kvjit::rt {

/// Seed and public key, as libsodium has them.
using SecretKey = std::array<std::uint8_t, 64>;

/// Whether the signature is valid for the key in the header; of an unsigned bundle, whether both are zero. The error is
/// a clause whose subject is the bundle.
std::expected<void, std::string> check_signature(const BundleHeader& header);

/// Writes key and signature into the header, replacing others.
void sign(BundleHeader& header, const SecretKey& key);

/// 64 hexadecimal digits, of either case.
std::optional<PublicKey> parse_public_key(std::string_view digits);
std::string print_public_key(const PublicKey& key);
PublicKey public_key(const SecretKey& key);

/// Parses what `openssl genpkey -algorithm ed25519` writes, PKCS #8 in PEM; nullopt for anything else.
std::optional<SecretKey> parse_secret_key(std::string_view pem);

}  // namespace kvjit::rt
