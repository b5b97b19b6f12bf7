// An open bundle: its whole index is checked at once, each entry when it is read.
#pragma once

#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "bundle/bundle_bytes.h"
#include "bundle/format.h"

namespace kvjit::rt {

/// What an entry runs, and what names it.
struct BundleCode {
    std::string identity;
    std::string provenance;
    std::string target;
    std::string image;
};

/// An entry's texts for people; "" where the bundle was made without them.
struct BundleTexts {
    std::string source;
    std::string log;
};

/// Immutable, thread-safe. Errors are clauses whose subject is the bundle: "is cut short: ...".
class Bundle {
public:
    /// Reads header and index, nothing else. A signature is checked against the key in the bundle; whether to trust
    /// that key is up to the caller.
    static std::expected<Bundle, std::string> open(std::unique_ptr<BundleBytes> bytes);

    const BundleHeader& header() const { return header_; }
    std::size_t size() const { return index_.size(); }
    BundleRecord record(std::size_t entry) const { return index_[entry]; }
    /// The number of the entry with this identity.
    std::optional<std::size_t> find(std::string_view identity) const;

    /// Parts of an entry, read and verified. Errors: what is read differs from what the index says.
    std::expected<BundleCode, std::string> code(std::size_t entry) const;
    std::expected<BundleTexts, std::string> texts(std::size_t entry) const;
    std::expected<std::string, std::string> identity(std::size_t entry) const;

private:
    Bundle(std::unique_ptr<BundleBytes> bytes, const BundleHeader& header, BundleIndex index)
        : bytes_(std::move(bytes)), header_(header), index_(std::move(index)) {}

    /// A clause: "; it is of merge for x86_64-unknown-linux-gnu:x86-64-v3"; "" where its identity is damaged, too.
    std::string name_of(std::size_t entry) const;

    std::unique_ptr<BundleBytes> bytes_;
    BundleHeader header_;
    BundleIndex index_;
};

}  // namespace kvjit::rt
