// The bytes of a bundle, against docs/bundle_format.md.
#include <doctest/doctest.h>
#include <zstd.h>

#include <algorithm>

#include "fixture.h"

using namespace kvjit::rt;
using namespace kvjit::rt::test;

namespace {

std::string zstd(const std::string& text) {
    std::string packed(ZSTD_compressBound(text.size()), '\0');
    packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 9));
    return packed;
}

/// Rows of two entries of 4 bytes of code each, without texts, in the right order.
std::vector<Row> two_rows() {
    std::vector<Row> rows = {{"a", 472, 1, 1, 1, 1, 0, 0, 0, 0, "a123", ""},
                             {"b", 476, 1, 1, 1, 1, 0, 0, 0, 0, "b456", ""}};
    if (blake2b("b") < blake2b("a")) {
        std::swap(rows[0], rows[1]);
        std::swap(rows[0].offset, rows[1].offset);
    }
    return rows;
}

std::string index_of(const std::vector<Row>& rows) {
    std::string index;
    for (const Row& row : rows) index += row.bytes();
    return index;
}

/// Under a header that holds, followed by all rows' code.
std::string bundle_over(const std::vector<Row>& rows, std::uint32_t version = 1) {
    const std::string index = index_of(rows);
    std::string body;
    for (const Row& row : rows) body += row.code;
    return header(version, rows.size(), 192 + index.size() + body.size(), index) + index + body;
}

}  // namespace

TEST_CASE("a bundle's bytes are those of the format's page") {
    const std::string source = zstd("source"), log = zstd("log");
    const Row row{"identity",
                  192 + 140,
                  5,
                  8,
                  10,
                  6,
                  static_cast<std::uint32_t>(source.size()),
                  static_cast<std::uint32_t>(log.size()),
                  6,
                  3,
                  "identityprovenancetargetimage",
                  source + log};
    const std::string index = row.bytes();
    const std::string body = row.code + row.texts;
    const std::string expected = header(1, 1, 192 + 140 + body.size(), index) + index + body;
    CHECK(bundle_of({{{"identity", "provenance", "target", "image"}, {"source", "log"}}}) == expected);
    CHECK(bundle_of({}) == header(1, 0, 192, ""));
}

TEST_CASE("what another hand wrote by the page is read") {
    const std::vector<Row> rows = two_rows();
    const std::string bytes = bundle_over(rows);
    const auto bundle = Bundle::open(bundle_in_memory(bytes));
    REQUIRE_MESSAGE(bundle, bundle.error());
    CHECK(bundle->size() == 2);
    CHECK(bundle->header().abi == 1);
    for (const Row& row : rows) {
        const auto code = bundle->code(*bundle->find(row.identity));
        REQUIRE(code);
        CHECK(code->identity + code->provenance + code->target + code->image == row.code);
    }
}

TEST_CASE("an entry that lies under another program's digest is not handed out") {
    std::vector<Row> rows = two_rows();
    const std::string other = rows[1].identity;
    rows[1].code = "c789";
    const std::string bytes = bundle_over(rows);
    const auto bundle = Bundle::open(bundle_in_memory(bytes));
    REQUIRE_MESSAGE(bundle, bundle.error());
    CHECK(bundle->code(*bundle->find(other)).error().starts_with("has a damaged entry 1: it is another program's"));
    CHECK(bundle->identity(*bundle->find(other)).error().starts_with("has a damaged entry 1: its identity differs"));
}

TEST_CASE("the same entries in any order make the same bytes") {
    std::vector<BundleEntry> entries = entries_of(9);
    const std::string bytes = bundle_of(entries);
    std::ranges::reverse(entries);
    CHECK(bundle_of(entries) == bytes);
    std::ranges::rotate(entries, entries.begin() + 4);
    CHECK(bundle_of(entries) == bytes);
}

TEST_CASE("an identity stands in a bundle once") {
    BundleEntry other = entry_of(1);
    other.code.image = "other";
    const std::vector<BundleEntry> entries = {entry_of(1), entry_of(2), other};
    CHECK(encode_bundle(1, entries).error() == "two entries have one identity: identity 1");
}

TEST_CASE("an index that lies under digests that hold is refused") {
    const std::vector<Row> right = two_rows();
    REQUIRE(objection(bundle_over(right)) == "");
    const auto with = [&](auto change) {
        std::vector<Row> rows = right;
        change(rows);
        return objection(bundle_over(rows));
    };
    const std::string out_of_order = "has a bad index: record 1 is out of order";
    CHECK(with([](auto& rows) { std::swap(rows[0].identity, rows[1].identity); }) == out_of_order);
    CHECK(with([](auto& rows) { rows[1].identity = rows[0].identity; }) == out_of_order);
    const std::string gap = " has an entry that doesn't begin where the one before it ends";
    CHECK(with([](auto& rows) { rows[0].offset = 471; }) == "has a bad index: record 0" + gap);
    CHECK(with([](auto& rows) { rows[1].offset = 475; }) == "has a bad index: record 1" + gap);  // overlaps the first
    CHECK(with([](auto& rows) { rows[1].offset = 477; }) == "has a bad index: record 1" + gap);
    CHECK(with([](auto& rows) { rows[1].offset = ~std::uint64_t{0}; }) == "has a bad index: record 1" + gap);
    const std::string past = "has a bad index: record 1 has an entry past the end";
    CHECK(with([](auto& rows) { rows[1].image = 2; }) == past);
    CHECK(with([](auto& rows) { rows[1].packed_log = 1; }) == past);
    CHECK(with([](auto& rows) { rows[1].image = 0; }) == "has a bad index: bytes past its last entry belong to none");
    const std::string large = "has a bad index: record 1 has an entry that is too large";
    CHECK(with([](auto& rows) { rows[1].image = ~std::uint64_t{0}; }) == large);  // so that a sum would wrap
    CHECK(with([](auto& rows) { rows[1].provenance = ~std::uint32_t{0}; }) == large);
    CHECK(with([](auto& rows) { rows[1].source = ~std::uint32_t{0}; }) == large);
}

TEST_CASE("a header that lies under a digest that holds is refused") {
    const std::string index = index_of(two_rows());
    const std::string body = index + "a123b456";
    const std::uint64_t size = 192 + body.size();
    CHECK(objection(header(1, 2, size, index) + body) != "has a damaged header: its digest differs");
    CHECK(objection(bundle_over(two_rows(), 2)) == "is of format version 2; this library reads version 1");
    CHECK(objection(bundle_over(two_rows(), 0)) == "is of format version 0; this library reads version 1");
    const std::uint64_t wraps = ~std::uint64_t{0} / 140 + 1;
    for (const std::uint64_t entries : {std::uint64_t{3}, wraps, wraps + 1, ~std::uint64_t{0}}) {
        CAPTURE(entries);
        CHECK(objection(header(1, entries, size, index) + body).starts_with("has a bad header: an index of "));
    }
    CHECK(objection(header(1, 1, size, index) + body) == "has a damaged index: its digest differs");
    CHECK(objection(header(1, 2, size + 1, index) + body) == "is cut short: it has 480 of 481 bytes");
    CHECK(objection(header(1, 2, size - 1, index) + body) == "has 1 bytes past its end");
}

TEST_CASE("what is no bundle is told from what is cut") {
    CHECK(objection("#!/bin/sh\necho hello, world\n") == "is no bundle");
    CHECK(objection("") == "is cut short: it has 0 of 192 bytes");
    CHECK(objection("\x89KVJIT\r\n" + std::string(300, ' ')) == "is no bundle");  // an entry of the disk cache
}
