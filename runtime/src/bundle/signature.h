// Who made a bundle: an Ed25519 signature of its digest, which names its whole content.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "bundle/format.h"

namespace kvjit::rt {

/// Seed and public key, as libsodium has them.
using SecretKey = std::array<std::uint8_t, 64>;

/// Whether the signature is right for the key that stands beside it; of an unsigned bundle, that nothing stands there.
/// The error is a clause whose subject is the bundle.
std::expected<void, std::string> check_signature(const BundleHeader& header);

/// Puts key and signature into the header, in the place of others.
void sign(BundleHeader& header, const SecretKey& key);

/// 64 hexadecimal digits, of either case.
std::optional<PublicKey> parse_public_key(std::string_view digits);
std::string print_public_key(const PublicKey& key);
PublicKey public_key(const SecretKey& key);

/// What `openssl genpkey -algorithm ed25519` writes: PKCS #8 in PEM. Nothing where it is anything else.
std::optional<SecretKey> parse_secret_key(std::string_view pem);

}  // namespace kvjit::rt
