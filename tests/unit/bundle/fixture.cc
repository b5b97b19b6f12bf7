#include "fixture.h"

#include <doctest/doctest.h>

namespace kvjit::rt::test {

BundleEntry entry_of(int number, std::size_t image_bytes) {
    const std::string name = std::to_string(number);
    return {{"identity " + name, "provenance " + name, "target " + name, std::string(image_bytes, char('a' + number))},
            {"source " + name, number % 2 == 0 ? "" : "log " + name}};
}

std::vector<BundleEntry> entries_of(int count) {
    std::vector<BundleEntry> entries;
    for (int i = 0; i < count; ++i) entries.push_back(entry_of(i));
    return entries;
}

std::string bundle_of(const std::vector<BundleEntry>& entries) {
    const auto bytes = encode_bundle(1, entries);
    REQUIRE(bytes);
    return *bytes;
}

std::string objection(const std::string& bytes) {
    const auto bundle = Bundle::open(bundle_in_memory(bytes));
    return bundle ? "" : bundle.error();
}

std::string Row::bytes() const {
    std::string text = blake2b(identity) + little_endian(offset, 8) + little_endian(image, 8);
    for (const std::uint32_t part : {identity_bytes, provenance, target, packed_source, packed_log, source, log}) {
        text += little_endian(part, 4);
    }
    return text + blake2b(code) + blake2b(texts);
}

std::string header(std::uint32_t version, std::uint64_t entries, std::uint64_t bytes, const std::string& index) {
    const std::string lead = std::string("\x89KVJB\r\n\x1a", 8) + little_endian(version, 4) + little_endian(1, 4) +
                             little_endian(entries, 8) + little_endian(bytes, 8) + blake2b(index);
    return lead + blake2b(lead) + std::string(96, '\0');
}

}  // namespace kvjit::rt::test
