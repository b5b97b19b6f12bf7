// The bytes of an entry, against docs/cache_format.md.
#include "disk_cache/entry.h"

#include <doctest/doctest.h>

#include "fixture.h"
#include "support/file_bytes.h"

using namespace kvjit::rt;
using namespace kvjit::rt::test;
using kvjit::test::blake2b;
using kvjit::test::little_endian;

namespace {

std::string hexadecimal(const std::string& bytes) {
    std::string text;
    for (const char byte : bytes) {
        for (const int digit : {(byte >> 4) & 15, byte & 15}) text += "0123456789abcdef"[digit];
    }
    return text;
}

/// An entry with any header whatever and a digest that holds.
std::string sealed(std::uint64_t version, std::uint64_t sections, const std::vector<std::uint64_t>& lengths,
                   const std::string& body) {
    std::string lead = "\x89KVJIT\r\n" + little_endian(version, 4) + little_endian(sections, 4);
    for (std::uint64_t length : lengths) lead += little_endian(length, 8);
    return lead + blake2b(lead + body) + body;
}

}  // namespace

TEST_CASE("an entry's bytes are those of the format's page") {
    const std::string bytes = encode_entry({"identity", "digest", "maker"}, {"object", "source", "log"});
    CHECK(bytes == sealed(2, 6, {8, 6, 5, 6, 6, 3}, "identitydigestmakerobjectsourcelog"));
}

TEST_CASE("what is encoded is decoded") {
    for (const Entry& entry : {Entry{}, Entry{"", "source", ""}, Entry{std::string(3, '\0'), "", "log"}, entry_of(1)}) {
        const EntryKey key{"identity", "digest", entry.source};
        const std::string bytes = encode_entry(key, entry);
        const auto view = decode_entry(bytes);
        REQUIRE(view);
        CHECK(holds_key(*view, key));
        CHECK(view->object == entry.object);
        CHECK(view->source == entry.source);
        CHECK(view->log == entry.log);
    }
}

TEST_CASE("every changed byte, every cut and every addition is noticed") {
    const std::string good = encode_entry(key_of(1), entry_of(1, 40));
    REQUIRE(decode_entry(good));
    for (std::size_t i = 0; i < good.size(); ++i) {
        CAPTURE(i);
        for (int bit = 0; bit < 8; ++bit) {
            std::string bad = good;
            bad[i] = static_cast<char>(bad[i] ^ 1 << bit);
            CHECK_FALSE(decode_entry(bad));
        }
        CHECK_FALSE(decode_entry(good.substr(0, i)));
        CHECK_FALSE(decode_entry(good.substr(i + 1)));
    }
    CHECK_FALSE(decode_entry(good + '\0'));
}

TEST_CASE("a header that lies under a digest that holds is refused") {
    const std::string body = "identitydigestmakerobjectsourcelog";
    CHECK(decode_entry(sealed(2, 6, {8, 6, 5, 6, 6, 3}, body)));
    CHECK_FALSE(decode_entry(sealed(1, 6, {8, 6, 5, 6, 6, 3}, body)));
    CHECK_FALSE(decode_entry(sealed(3, 6, {8, 6, 5, 6, 6, 3}, body)));
    CHECK_FALSE(decode_entry(sealed(2, 5, {8, 6, 5, 6, 6, 3}, body)));
    CHECK_FALSE(decode_entry(sealed(2, 6, {8, 6, 5, 6, 6, 2}, body)));
    CHECK_FALSE(decode_entry(sealed(2, 6, {8, 6, 5, 6, 6, 4}, body)));
    const std::uint64_t wraps = ~std::uint64_t{0};
    CHECK_FALSE(decode_entry(sealed(2, 6, {wraps, 35, 0, 0, 0, 0}, body)));
    CHECK_FALSE(decode_entry(sealed(2, 6, {8, wraps, wraps, 0, 0, 28}, body)));
}

TEST_CASE("keys are compared whole; who names no maker takes any") {
    const std::string bytes = encode_entry({"identity", "digest", "maker"}, entry_of(1));
    const auto view = decode_entry(bytes);
    REQUIRE(view);
    CHECK(holds_key(*view, {"identity", "digest", "maker"}));
    CHECK_FALSE(holds_key(*view, {"identitY", "digest", "maker"}));
    CHECK_FALSE(holds_key(*view, {"identity", "digest", "maker "}));
    CHECK_FALSE(holds_key(*view, {"identityd", "igest", "maker"}));
    CHECK_FALSE(holds_key(*view, {"identity", "digestm", "aker"}));
    CHECK(holds_key(*view, made_by_anyone({"identity", "digest", ""})));
    CHECK_FALSE(holds_key(*view, made_by_anyone({"identity", "digesT", ""})));
    CHECK_FALSE(holds_key(*view, made_by_anyone({"identityd", "igest", ""})));
}

TEST_CASE("an entry's name is that of the format's page") {
    const std::string lead = little_endian(2, 4) + little_endian(2, 8);
    const EntryKey key{"ab", "c", "maker"};
    CHECK(entry_digest(key) == hexadecimal(blake2b(lead + "abc")));
    CHECK(entry_name(key, "maker") == entry_digest(key) + '-' + hexadecimal(blake2b("maker")).substr(0, 16));
}

TEST_CASE("a key's digest depends on its texts and on where they part, but not on the maker") {
    const std::string digest = entry_digest({"ab", "c", "maker"});
    CHECK(digest == entry_digest(made_by_anyone({"ab", "c", ""})));
    CHECK(digest != entry_digest({"a", "bc", "maker"}));
    CHECK(digest != entry_digest({"ab", "d", "maker"}));
    CHECK(digest != entry_digest({"bb", "c", "maker"}));
}
