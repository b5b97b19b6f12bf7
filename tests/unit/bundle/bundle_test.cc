// What goes into a bundle comes out of it, and nothing else is read.
#include <doctest/doctest.h>

#include <vector>

#include "bundle/pack.h"
#include "fixture.h"

using namespace kvjit::rt;
using namespace kvjit::rt::test;

namespace {

/// Memory that notes what is read of it.
class WatchedBytes final : public BundleBytes {
public:
    struct Range {
        std::uint64_t offset, bytes;
    };
    WatchedBytes(std::string bytes, std::vector<Range>& read) : bytes_(std::move(bytes)), read_(read) {}
    std::uint64_t size() const override { return bytes_.size(); }
    std::expected<std::string, std::string> read(std::uint64_t offset, std::size_t bytes) const override {
        read_.push_back({offset, bytes});
        return bytes_.substr(offset, bytes);
    }

private:
    std::string bytes_;
    std::vector<Range>& read_;
};

}  // namespace

TEST_CASE("entries are found by identity, and come out whole") {
    const std::vector<BundleEntry> entries = entries_of(20);
    const std::string bytes = bundle_of(entries);
    const auto bundle = Bundle::open(bundle_in_memory(bytes));
    REQUIRE(bundle);
    CHECK(bundle->size() == 20);
    for (const BundleEntry& entry : entries) {
        const auto found = bundle->find(entry.code.identity);
        REQUIRE(found);
        const auto read = read_entry(*bundle, *found);
        REQUIRE(read);
        CHECK(read->code.identity == entry.code.identity);
        CHECK(read->code.provenance == entry.code.provenance);
        CHECK(read->code.target == entry.code.target);
        CHECK(read->code.image == entry.code.image);
        CHECK(read->texts.source == entry.texts.source);
        CHECK(read->texts.log == entry.texts.log);
        CHECK(bundle->identity(*found) == entry.code.identity);
    }
    for (const char* name : {"", "identity", "identity 20", "identity 1 "}) CHECK_FALSE(bundle->find(name));
}

TEST_CASE("a bundle of nothing is one, and has nothing") {
    const std::string bytes = bundle_of({});
    const auto bundle = Bundle::open(bundle_in_memory(bytes));
    REQUIRE(bundle);
    CHECK(bundle->size() == 0);
    CHECK_FALSE(bundle->find("identity 1"));
}

TEST_CASE("empty parts are parts") {
    const std::string bytes = bundle_of({{{"", "", "", ""}, {"", ""}}});
    const auto bundle = Bundle::open(bundle_in_memory(bytes));
    REQUIRE(bundle);
    const auto read = read_entry(*bundle, *bundle->find(""));
    REQUIRE(read);
    CHECK(read->code.image.empty());
    CHECK(read->texts.source.empty());
}

TEST_CASE("opening reads header and index, a look nothing, code no texts") {
    std::vector<WatchedBytes::Range> read;
    const auto bundle = Bundle::open(std::make_unique<WatchedBytes>(bundle_of(entries_of(5)), read));
    REQUIRE(bundle);
    const std::uint64_t end_of_index = kBundleHeaderBytes + 5 * kBundleRecordBytes;
    for (const auto& range : read) CHECK(range.offset + range.bytes <= end_of_index);
    read.clear();
    const std::size_t entry = *bundle->find("identity 3");
    CHECK(read.empty());
    REQUIRE(bundle->code(entry));
    const BundleRecord record = bundle->record(entry);
    std::uint64_t bytes = 0;
    for (const auto& range : read) {
        CHECK(range.offset >= record.offset);
        CHECK(range.offset + range.bytes <= record.offset + record.code_bytes());
        bytes += range.bytes;
    }
    CHECK(bytes == record.code_bytes());
}

TEST_CASE("texts are packed and unpacked, and never become more than was said") {
    const std::string text(10000, 'x');
    const std::string packed = pack(text);
    CHECK(packed.size() < 100);
    CHECK(unpack(packed, text.size()) == text);
    CHECK_FALSE(unpack(packed, text.size() - 1));
    CHECK_FALSE(unpack(packed, text.size() + 1));
    CHECK_FALSE(unpack(packed, 0));
    CHECK_FALSE(unpack("no zstd", 10));
    CHECK_FALSE(unpack("", 10));
    CHECK(pack("").empty());
    CHECK(unpack("", 0) == "");
}
