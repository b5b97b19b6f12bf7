// The source of a bundle's bytes: read piece by piece into private memory, never mapped.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <string_view>

namespace kvjit::rt {

/// Thread-safe.
class BundleBytes {
public:
    virtual ~BundleBytes() = default;
    virtual std::uint64_t size() const = 0;
    /// Up to `bytes`, fewer only at the end. The error is a clause whose subject is the bundle: "can't be read: ...".
    virtual std::expected<std::string, std::string> read(std::uint64_t offset, std::size_t bytes) const = 0;
};

/// A file, held open: renaming or removing it changes nothing. The error is a clause, as read's.
std::expected<std::unique_ptr<BundleBytes>, std::string> open_bundle_file(const std::string& path);

/// The caller's memory, which must outlive it.
std::unique_ptr<BundleBytes> bundle_in_memory(std::string_view bytes);

}  // namespace kvjit::rt
