// Damage: cut, flipped, spliced, changed under an open bundle. Nothing comes out of it but an error.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "fixture.h"
#include "support/temporary_folder.h"

using namespace kvjit::rt;
using namespace kvjit::rt::test;

namespace {

/// Whether opening or any read of any entry notices.
bool is_noticed(const std::string& bytes) {
    const auto bundle = Bundle::open(bundle_in_memory(bytes));
    if (!bundle) return !bundle.error().empty();
    for (std::size_t i = 0; i < bundle->size(); ++i) {
        if (!bundle->code(i) || !bundle->texts(i)) return true;
    }
    return false;
}

/// A bundle on disk that is open, and a stream that writes to it.
struct OpenFile {
    explicit OpenFile(const std::string& bytes)
        : path(folder.write("some.kvjb", bytes)), bundle(*Bundle::open(*open_bundle_file(path))) {}
    void overwrite(std::uint64_t offset, char byte) const {
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(static_cast<std::streamoff>(offset));
        file.put(byte);
    }

    kvjit::test::TemporaryFolder folder;
    std::string path;
    Bundle bundle;
};

}  // namespace

TEST_CASE("a bundle that is cut at any length doesn't open") {
    const std::string good = bundle_of(entries_of(3));
    REQUIRE(objection(good) == "");
    for (std::size_t length = 0; length < good.size(); ++length) {
        CAPTURE(length);
        CHECK(objection(good.substr(0, length)).starts_with("is cut short: it has " + std::to_string(length) + " of "));
        CHECK(objection(good.substr(good.size() - length)) != "");
    }
    CHECK(objection(good + '\0') == "has 1 bytes past its end");
}

TEST_CASE("every flipped bit is noticed, in the header and the index at opening") {
    const std::string good = bundle_of(entries_of(3));
    REQUIRE(!is_noticed(good));
    for (std::size_t i = 0; i < good.size(); ++i) {
        CAPTURE(i);
        for (int bit = 0; bit < 8; ++bit) {
            std::string bad = good;
            bad[i] = static_cast<char>(bad[i] ^ 1 << bit);
            CHECK(is_noticed(bad));
            if (i < kBundleHeaderBytes + 3 * kBundleRecordBytes) CHECK(objection(bad) != "");
        }
    }
}

TEST_CASE("two bundles spliced at any byte are noticed") {
    std::vector<BundleEntry> others = entries_of(3);
    for (BundleEntry& entry : others) entry.code.image.back() ^= 1;
    const std::string one = bundle_of(entries_of(3)), other = bundle_of(others);
    REQUIRE(one.size() == other.size());
    for (std::size_t i = 1; i < one.size(); ++i) {
        const std::string spliced = one.substr(0, i) + other.substr(i);
        if (spliced == one || spliced == other) continue;
        CAPTURE(i);
        CHECK(is_noticed(spliced));
    }
}

TEST_CASE("one entry's damage is no other's") {
    std::string bytes = bundle_of(entries_of(3));
    const std::string good = bytes;
    const auto place = Bundle::open(bundle_in_memory(good))->record(1);
    bytes[place.offset + place.code_bytes() - 1] ^= 1;
    const auto bundle = Bundle::open(bundle_in_memory(bytes));
    REQUIRE(bundle);
    CHECK(bundle->code(0));
    CHECK(bundle->code(1).error().starts_with("has a damaged entry 1: its digest differs"));
    CHECK(bundle->identity(1));  // what is looked at alone is judged alone
    CHECK(bundle->texts(1));
    CHECK(bundle->code(2));
}

TEST_CASE("a file that is changed or cut while it is open gives no entry of it") {
    const std::string bytes = bundle_of(entries_of(3));
    const OpenFile file(bytes);
    const BundleRecord last = file.bundle.record(2);
    REQUIRE(file.bundle.code(2));
    file.overwrite(last.offset, '!');
    CHECK(file.bundle.code(2).error().starts_with("has a damaged entry 2: its digest differs"));
    CHECK(file.bundle.identity(2).error().starts_with("has a damaged entry 2: its identity differs"));
    CHECK(file.bundle.code(1));
    std::filesystem::resize_file(file.path, last.offset + 1);
    CHECK(file.bundle.code(2).error().starts_with("has a damaged entry 2: it is cut short"));
    CHECK(file.bundle.texts(2).error().starts_with("has a damaged entry 2: it is cut short"));
    std::filesystem::resize_file(file.path, 0);
    for (std::size_t i = 0; i < 3; ++i) CHECK_FALSE(file.bundle.code(i));
}

TEST_CASE("a file that loses its name, or gets another one's, is read on") {
    const OpenFile file(bundle_of(entries_of(3)));
    std::filesystem::remove(file.path);
    file.folder.write("some.kvjb", "something else");
    CHECK(file.bundle.code(0));
}

TEST_CASE("what is no regular file, or isn't there, is refused with the reason") {
    const kvjit::test::TemporaryFolder folder;
    CHECK(open_bundle_file(folder.path("none")).error() == "can't be opened: No such file or directory");
    CHECK(open_bundle_file(folder.path()).error() == "is not a regular file");
    CHECK(open_bundle_file("/dev/null").error() == "is not a regular file");
}
