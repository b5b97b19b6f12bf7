// Encodes bundles.
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

/// The bytes of an unsigned bundle of these entries, which don't depend on their order. Errors, as a sentence: two
/// entries of one identity, or an entry that is too large.
std::expected<std::string, std::string> encode_bundle(std::uint32_t abi, std::span<const BundleEntry> entries);

/// Reads all parts of an entry.
std::expected<BundleEntry, std::string> read_entry(const Bundle& bundle, std::size_t entry);

}  // namespace kvjit::rt
