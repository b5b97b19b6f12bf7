#include "bundle/signature.h"

#include <sodium.h>

namespace kvjit::rt {
namespace {

static_assert(sizeof(PublicKey) == crypto_sign_PUBLICKEYBYTES && sizeof(Signature) == crypto_sign_BYTES &&
              sizeof(SecretKey) == crypto_sign_SECRETKEYBYTES);

/// The prefix makes a bundle's signature invalid for anything else.
std::string signed_text(const BundleHeader& header) {
    return "kvjit bundle, format 1\n" + std::string(as_text(header.digest));
}

const unsigned char* bytes_of(const std::string& text) {
    return reinterpret_cast<const unsigned char*>(text.data());
}

/// A private key of Ed25519 in PKCS #8 (RFC 8410): this, then the seed.
constexpr std::string_view kPkcs8{"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20", 16};
constexpr std::string_view kBegin = "-----BEGIN PRIVATE KEY-----";
constexpr std::string_view kEnd = "-----END PRIVATE KEY-----";

/// The bytes that the PEM's base64 encodes, if they are as many as such a key has.
std::optional<std::string> decode_pem(std::string_view pem) {
    const std::size_t begin = pem.find(kBegin), end = pem.find(kEnd);
    if (begin == pem.npos || end == pem.npos || end < begin) return std::nullopt;
    const std::string_view base64 = pem.substr(begin + kBegin.size(), end - begin - kBegin.size());
    std::string bytes(kPkcs8.size() + crypto_sign_SEEDBYTES, '\0');
    std::size_t got = 0;
    const int failed = sodium_base642bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(), base64.data(),
                                         base64.size(), "\r\n \t", &got, nullptr, sodium_base64_VARIANT_ORIGINAL);
    return failed == 0 && got == bytes.size() ? std::optional(bytes) : std::nullopt;
}

}  // namespace

std::expected<void, std::string> check_signature(const BundleHeader& header) {
    if (!header.is_signed() && header.signature == Signature{}) return {};
    if (!header.is_signed()) return std::unexpected("has a signature without a key");
    const std::string text = signed_text(header);
    if (crypto_sign_verify_detached(header.signature.data(), bytes_of(text), text.size(), header.key.data()) == 0) {
        return {};
    }
    return std::unexpected("has a wrong signature: it is not one of key " + print_public_key(header.key) +
                           " for this content");
}

void sign(BundleHeader& header, const SecretKey& key) {
    const std::string text = signed_text(header);
    header.key = public_key(key);
    crypto_sign_detached(header.signature.data(), nullptr, bytes_of(text), text.size(), key.data());
}

std::optional<PublicKey> parse_public_key(std::string_view digits) {
    PublicKey key{};
    std::size_t bytes = 0;
    const char* end = nullptr;
    const int failed = sodium_hex2bin(key.data(), key.size(), digits.data(), digits.size(), nullptr, &bytes, &end);
    const bool whole = failed == 0 && bytes == key.size() && end == digits.data() + digits.size();
    return whole && key != PublicKey{} ? std::optional(key) : std::nullopt;
}

std::string print_public_key(const PublicKey& key) {
    return digest_hex(Digest{key});
}

PublicKey public_key(const SecretKey& key) {
    PublicKey part{};
    crypto_sign_ed25519_sk_to_pk(part.data(), key.data());
    return part;
}

std::optional<SecretKey> parse_secret_key(std::string_view pem) {
    const std::optional<std::string> bytes = decode_pem(pem);
    if (!bytes || !bytes->starts_with(kPkcs8)) return std::nullopt;
    PublicKey unused{};
    SecretKey key{};
    crypto_sign_seed_keypair(unused.data(), key.data(), bytes_of(*bytes) + kPkcs8.size());
    return key;
}

}  // namespace kvjit::rt
