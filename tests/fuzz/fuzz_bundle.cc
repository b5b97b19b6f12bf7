// Any bytes as a bundle: they are refused, or all that comes out lies in them. Once as they are, and once with the
// digests of header, index and entries put right, as whoever made them on purpose would.
#include <algorithm>

#include "bundle/encode.h"
#include "bundle/signature.h"
#include "fuzz_target.h"
#include "little_endian.h"

namespace {

using namespace kvjit::rt;
using kvjit::test::require;

constexpr std::size_t kIndexDigest = 32, kHeaderDigest = 64, kEntriesOffset = 16;  // docs/bundle_format.md
constexpr std::size_t kRecordOffset = 32, kRecordImage = 40, kRecordLengths = 48, kRecordCode = 76, kRecordTexts = 108;

void put(std::string& bytes, std::size_t at, const Digest& digest) {
    bytes.replace(at, digest.size(), as_text(digest));
}

/// Of the bytes from `begin` on, as many of `count` as there are.
std::string_view part(std::string_view bytes, std::uint64_t begin, std::uint64_t count) {
    return begin <= bytes.size() ? bytes.substr(begin, count) : std::string_view();
}

/// Digests of what the record says is its entry.
void mend_record(std::string& bytes, std::size_t record) {
    const std::string_view all = bytes;
    const auto number = [&](std::size_t at, std::size_t width) {
        return get_little_endian(all.substr(record + at, width));
    };
    const std::uint64_t begin = number(kRecordOffset, 8);
    std::uint64_t code = number(kRecordImage, 8);
    for (std::size_t i = 0; i < 3; ++i) code += number(kRecordLengths + 4 * i, 4);
    const std::uint64_t texts = number(kRecordLengths + 12, 4) + number(kRecordLengths + 16, 4);
    const Digest of_code = digest_of({part(all, begin, code)});
    const Digest of_texts = digest_of({part(all, begin + code, texts)});
    put(bytes, record + kRecordCode, of_code);
    put(bytes, record + kRecordTexts, of_texts);
}

std::string mended(std::string bytes) {
    if (bytes.size() < kBundleHeaderBytes) return bytes;
    const std::uint64_t whole = (bytes.size() - kBundleHeaderBytes) / kBundleRecordBytes;
    const std::uint64_t entries = std::min(whole, get_little_endian(std::string_view(bytes).substr(kEntriesOffset, 8)));
    for (std::uint64_t i = 0; i < entries; ++i) mend_record(bytes, kBundleHeaderBytes + i * kBundleRecordBytes);
    put(bytes, kIndexDigest, digest_of({part(bytes, kBundleHeaderBytes, entries * kBundleRecordBytes)}));
    put(bytes, kHeaderDigest, digest_of({part(bytes, 0, kHeaderDigest)}));
    return bytes;
}

void read_entry_of(const Bundle& bundle, std::size_t i, std::string_view bytes) {
    const BundleRecord record = bundle.record(i);
    const auto code = bundle.code(i);
    const auto texts = bundle.texts(i);
    if (code) {
        require(record.offset + record.code_bytes() <= bytes.size(), "an entry lies in the bundle");
        const std::string all = code->identity + code->provenance + code->target + code->image;
        require(all == part(bytes, record.offset, record.code_bytes()), "an entry is what lies there");
        require(bundle.find(code->identity) == i, "an entry is found by its identity");
    } else {
        require(!code.error().empty(), "what is refused is refused with a reason");
    }
    if (texts) require(texts->source.size() == record.source_bytes, "a source has the length that the index says");
}

void read_all(const std::string& bytes) {
    const auto bundle = Bundle::open(bundle_in_memory(bytes));
    if (!bundle) return require(!bundle.error().empty(), "what is refused is refused with a reason");
    require(bundle->header().bytes == bytes.size(), "a bundle has the size that it says");
    for (std::size_t i = 0; i < bundle->size(); ++i) read_entry_of(*bundle, i, bytes);
    require(!bundle->find("no program's identity"), "nothing is found that isn't there");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string bytes = kvjit::test::as_text(data, size);
    read_all(bytes);
    read_all(mended(bytes));
    return 0;
}

std::string kvjit::test::good_input(std::uint64_t number) {
    std::vector<BundleEntry> entries;
    for (std::uint64_t i = 0; i < number % 4; ++i) {
        const std::string name = std::to_string(i);
        entries.push_back({{"identity " + name, "provenance", "target", std::string(number / 4 % 50, 'i')},
                           {i % 2 == 0 ? "source " + name : "", "log"}});
    }
    return *encode_bundle(1, entries);
}
