// Signatures of bundles: made with openssl's keys, checked at opening.
#include "bundle/signature.h"

#include <doctest/doctest.h>

#include "fixture.h"

using namespace kvjit::rt;
using namespace kvjit::rt::test;

namespace {

/// `openssl genpkey -algorithm ed25519`, and what `openssl pkey -pubout` says of it: its last 32 bytes.
constexpr std::string_view kPem =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n"
    "-----END PRIVATE KEY-----\n";
/// RFC 8410, section 10.3: the example's key in section 10.1.
constexpr std::string_view kPublic = "19bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1";

SecretKey key_of(std::string_view pem) {
    const auto key = parse_secret_key(pem);
    REQUIRE(key);
    return *key;
}

/// The bundle, signed.
std::string signed_with(const SecretKey& key, const std::string& bytes) {
    BundleHeader header = *decode_header(bytes.substr(0, kBundleHeaderBytes), bytes.size());
    sign(header, key);
    return encode_header(header) + bytes.substr(kBundleHeaderBytes);
}

}  // namespace

TEST_CASE("an openssl key has the public key that its RFC says") {
    CHECK(print_public_key(public_key(key_of(kPem))) == kPublic);
    CHECK(parse_public_key(kPublic) == public_key(key_of(kPem)));
}

TEST_CASE("what is no key is none") {
    std::string text(kPem);
    CHECK_FALSE(parse_secret_key(""));
    CHECK_FALSE(parse_secret_key(kPublic));
    for (const std::size_t at : {std::size_t{3}, std::size_t{30}, text.size() - 10}) {
        std::string bad = text;
        bad[at] = '#';
        CHECK_FALSE(parse_secret_key(bad));
        CHECK_FALSE(parse_secret_key(text.substr(0, at)));
    }
    CHECK_FALSE(parse_public_key(""));
    CHECK_FALSE(parse_public_key(kPublic.substr(1)));
    CHECK_FALSE(parse_public_key(std::string(kPublic) + "00"));
    CHECK_FALSE(parse_public_key(std::string(64, 'g')));
    CHECK_FALSE(parse_public_key(std::string(64, '0')));  // it stands for no key
}

TEST_CASE("a signed bundle opens and names its key; signing again with another key replaces the first") {
    const std::string bytes = signed_with(key_of(kPem), bundle_of(entries_of(3)));
    const auto bundle = Bundle::open(bundle_in_memory(bytes));
    REQUIRE_MESSAGE(bundle, bundle.error());
    CHECK(bundle->header().is_signed());
    CHECK(print_public_key(bundle->header().key) == kPublic);
    CHECK_FALSE(Bundle::open(bundle_in_memory(bundle_of({})))->header().is_signed());
    std::string other_pem(kPem);
    other_pem.replace(other_pem.find("dVhC"), 4, "AAAA");
    const std::string again = signed_with(key_of(other_pem), bytes);
    CHECK(Bundle::open(bundle_in_memory(again))->header().key == public_key(key_of(other_pem)));
}

TEST_CASE("a signature is of one content and one key") {
    const std::string bytes = signed_with(key_of(kPem), bundle_of(entries_of(3)));
    const std::string other = bundle_of(entries_of(4));
    const std::string transplanted = other.substr(0, 96) + bytes.substr(96, 96) + other.substr(kBundleHeaderBytes);
    CHECK(objection(transplanted).starts_with("has a wrong signature"));
    std::string unnamed = bytes;
    unnamed.replace(96, 32, std::string(32, '\0'));
    CHECK(objection(unnamed) == "has a signature without a key");
    std::string unsigned_key = bytes;
    unsigned_key.replace(128, 64, std::string(64, '\0'));
    CHECK(objection(unsigned_key).starts_with("has a wrong signature"));
    for (std::size_t i = 96; i < kBundleHeaderBytes; ++i) {
        CAPTURE(i);
        std::string bad = bytes;
        bad[i] ^= 1;
        CHECK(objection(bad) != "");
    }
}
