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
/// Larger ones are neither written nor read, so that a damaged file can't exhaust memory.
inline constexpr std::size_t kMaxEntryBytes = std::size_t{256} << 20;

/// Parts of an entry's bytes; they live as long as those do.
struct EntryView {
    std::string_view identity;
    std::string_view source_digest;
    std::string_view maker;
    std::string_view object;
    std::string_view source;
    std::string_view log;
    std::string_view digest;  // of all of them
};

/// `key` names its maker.
std::string encode_entry(const EntryKey& key, const Entry& entry);

/// Checks magic, version, lengths and digest before it hands anything out. The error says what is wrong, for a log:
/// "cut short", "digest does not match". Whether the key is the one looked for is the caller's to compare.
std::expected<EntryView, std::string_view> decode_entry(std::string_view bytes);

/// Whether all texts are equal, byte by byte; the maker's only if the key names one.
bool holds_key(const EntryView& view, const EntryKey& key);

/// What the names of all makers' entries begin with, 64 hexadecimal digits, and the name of one maker's, which has 16
/// digits more behind "-". A place to look, never proof of what lies there.
std::string entry_digest(const EntryKey& key);
std::string entry_name(const EntryKey& key, std::string_view maker);

}  // namespace kvjit::rt
