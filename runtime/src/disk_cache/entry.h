// The bytes of an entry: one program's object, source and compiler log under the texts that name it. A file of
// the disk cache holds one; docs/cache_format.md is their specification.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "images/store.h"

namespace kvjit::rt {

/// Changes whenever the bytes of an entry, or what its key's texts mean, change.
inline constexpr std::uint32_t kEntryVersion = 2;
inline constexpr std::size_t kEntryHeaderBytes = 96;
/// The limit for writing and reading, so that a damaged file can't exhaust memory.
inline constexpr std::size_t kMaxEntryBytes = std::size_t{256} << 20;

/// The parts of an entry's bytes; valid as long as those are.
struct EntryView {
    std::string_view identity;
    std::string_view source_digest;
    std::string_view maker;
    std::string_view object;
    std::string_view source;
    std::string_view log;
    std::string_view digest;  // of all of them
};

/// Precondition: `key` has a maker.
std::string encode_entry(const EntryKey& key, const Entry& entry);

/// Checks magic, version, lengths and digest before it returns anything. The error is for a log: "cut short", "digest
/// does not match". The caller must compare the key with the requested one.
std::expected<EntryView, std::string_view> decode_entry(std::string_view bytes);

/// Whether all texts are equal, byte by byte; the maker's only if the key has one.
bool holds_key(const EntryView& view, const EntryKey& key);

/// The common prefix of the names of all makers' entries, 64 hexadecimal digits; and one maker's name, which has 16
/// more digits after "-". Names say where to look; they prove nothing about the contents.
std::string entry_digest(const EntryKey& key);
std::string entry_name(const EntryKey& key, std::string_view maker);

}  // namespace kvjit::rt
