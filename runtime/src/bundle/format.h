// The bytes of a bundle: header, index and the limits of an entry. docs/bundle_format.md is their specification. Pure
// functions over untrusted bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "digest.h"

namespace kvjit::rt {

/// Changes whenever the bytes of a bundle, or what an entry's texts mean, change.
inline constexpr std::uint32_t kBundleVersion = 1;
inline constexpr std::size_t kBundleHeaderBytes = 192;
inline constexpr std::size_t kBundleRecordBytes = 140;
/// The limit of one entry, and of each of its unpacked texts.
inline constexpr std::uint64_t kMaxBundleEntryBytes = std::uint64_t{256} << 20;

using PublicKey = std::array<std::uint8_t, 32>;
using Signature = std::array<std::uint8_t, 64>;

struct BundleHeader {
    std::uint32_t abi = 0;      // kernel ABI of all entries
    std::uint64_t entries = 0;  // records of the index
    std::uint64_t bytes = 0;    // of the whole bundle
    Digest index{};             // of the index
    Digest digest{};            // of the fields above: identifies the whole content
    PublicKey key{};            // all zero: unsigned
    Signature signature{};

    bool is_signed() const { return key != PublicKey{}; }
    std::uint64_t index_bytes() const { return entries * kBundleRecordBytes; }
};

/// One entry's place and digests. Its parts lie in this order, without gaps.
struct BundleRecord {
    Digest identity{};  // of the identity's text
    std::uint64_t offset = 0;
    std::uint64_t image_bytes = 0;
    std::uint32_t identity_bytes = 0, provenance_bytes = 0, target_bytes = 0;
    std::uint32_t packed_source_bytes = 0, packed_log_bytes = 0;  // as stored
    std::uint32_t source_bytes = 0, log_bytes = 0;                // unpacked
    Digest code{};                                                // of identity, provenance, target, image
    Digest texts{};                                               // of source and log, packed

    /// The parts that must be read to run the entry, and the other ones.
    std::uint64_t code_bytes() const {
        return std::uint64_t{identity_bytes} + provenance_bytes + target_bytes + image_bytes;
    }
    std::uint64_t texts_bytes() const { return std::uint64_t{packed_source_bytes} + packed_log_bytes; }
};

std::string encode_header(const BundleHeader& header);
std::string encode_record(const BundleRecord& record);
/// The digest for BundleHeader::digest.
Digest header_digest(const BundleHeader& header);

/// `size`: bytes of the whole bundle; `bytes`: the first kBundleHeaderBytes of them, or all if there are fewer. The
/// error is a clause whose subject is the bundle: "is cut short: ...".
std::expected<BundleHeader, std::string> decode_header(std::string_view bytes, std::uint64_t size);

/// A bundle's index: sorted by the identities' digests; the entries fill the bytes after it without gaps, in order.
class BundleIndex {
public:
    /// Checks all of it: digest, order, bounds. The error is a clause, as decode_header's.
    static std::expected<BundleIndex, std::string> decode(const BundleHeader& header, std::string bytes);

    std::size_t size() const { return bytes_.size() / kBundleRecordBytes; }
    BundleRecord operator[](std::size_t i) const;
    /// The index of the entry whose identity has this digest.
    std::optional<std::size_t> find(const Digest& identity) const;

private:
    explicit BundleIndex(std::string bytes) : bytes_(std::move(bytes)) {}
    std::string_view key(std::size_t i) const;

    std::string bytes_;
};

}  // namespace kvjit::rt
