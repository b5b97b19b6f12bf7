// Making a bundle's bytes.
#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <vector>

#include "bundle/bundle.h"

namespace kvjit::rt {

struct BundleEntry {
    BundleCode code;
    BundleTexts texts;
};

/// The bytes of a bundle of these entries, unsigned: the same for the same entries in any order. Errors: two entries of
/// one identity, an entry that is too large; a sentence.
std::expected<std::string, std::string> encode_bundle(std::uint32_t abi, std::span<const BundleEntry> entries);

/// All of an entry.
std::expected<BundleEntry, std::string> read_entry(const Bundle& bundle, std::size_t entry);

}  // namespace kvjit::rt
