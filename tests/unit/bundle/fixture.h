// Bundles of made-up entries, and a second hand at docs/bundle_format.md that shares no code with the first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bundle/encode.h"
#include "support/file_bytes.h"

namespace kvjit::rt::test {

using kvjit::test::blake2b;
using kvjit::test::little_endian;

/// An entry like no other number's.
BundleEntry entry_of(int number, std::size_t image_bytes = 8);
std::vector<BundleEntry> entries_of(int count);

/// The bytes of a bundle of these entries, for kernel ABI 1.
std::string bundle_of(const std::vector<BundleEntry>& entries);

/// What opening says: "" where it opens.
std::string objection(const std::string& bytes);

/// One record of an index.
struct Row {
    std::string identity;  // the text, whose digest is the key
    std::uint64_t offset = 0, image = 0;
    std::uint32_t identity_bytes = 0, provenance = 0, target = 0, packed_source = 0, packed_log = 0, source = 0,
                  log = 0;
    std::string code, texts;  // that the digests are of

    std::string bytes() const;
};

/// A header that holds, whatever it says.
std::string header(std::uint32_t version, std::uint64_t entries, std::uint64_t bytes, const std::string& index);

}  // namespace kvjit::rt::test
