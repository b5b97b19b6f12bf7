#include "disk_cache/entry.h"

#include <array>
#include <span>

#include "digest.h"
#include "little_endian.h"

namespace kvjit::rt {
namespace {

constexpr std::string_view kMagic{"\x89KVJIT\r\n", 8};
constexpr std::size_t kSections = 6;
constexpr std::size_t kMakerDigits = 16;
constexpr std::size_t kLengthsOffset = 16;
constexpr std::size_t kDigestOffset = kLengthsOffset + 8 * kSections;
static_assert(kDigestOffset + sizeof(Digest) == kEntryHeaderBytes);

/// Splits the bytes after the header into sections; false if the lengths do not add up to them exactly.
bool cut_sections(std::string_view bytes, std::span<std::string_view, kSections> sections) {
    std::string_view rest = bytes.substr(kEntryHeaderBytes);
    for (std::size_t i = 0; i < kSections; ++i) {
        const std::uint64_t length = get_little_endian(bytes.substr(kLengthsOffset + 8 * i, 8));
        if (length > rest.size()) return false;
        sections[i] = rest.substr(0, length);
        rest.remove_prefix(length);
    }
    return rest.empty();
}

bool digest_matches(std::string_view bytes) {
    const Digest digest = digest_of({bytes.substr(0, kDigestOffset), bytes.substr(kEntryHeaderBytes)});
    return bytes.substr(kDigestOffset, digest.size()) == as_text(digest);
}

std::string encode_lead(std::span<const std::string_view, kSections> sections) {
    std::string lead{kMagic};
    put_little_endian(lead, kEntryVersion, 4);
    put_little_endian(lead, kSections, 4);
    for (std::string_view section : sections) put_little_endian(lead, section.size(), 8);
    return lead;
}

}  // namespace

std::string encode_entry(const EntryKey& key, const Entry& entry) {
    const std::array<std::string_view, kSections> sections{key.identity, key.source,   *key.maker,
                                                           entry.object, entry.source, entry.log};
    std::string bytes = encode_lead(sections);
    bytes += as_text(digest_of({bytes, sections[0], sections[1], sections[2], sections[3], sections[4], sections[5]}));
    for (std::string_view section : sections) bytes += section;
    return bytes;
}

std::expected<EntryView, std::string_view> decode_entry(std::string_view bytes) {
    if (bytes.size() < kEntryHeaderBytes) return std::unexpected("cut short");
    if (!bytes.starts_with(kMagic)) return std::unexpected("not an entry");
    if (get_little_endian(bytes.substr(8, 4)) != kEntryVersion) return std::unexpected("of another format version");
    if (get_little_endian(bytes.substr(12, 4)) != kSections) return std::unexpected("of another number of sections");
    std::array<std::string_view, kSections> sections;
    if (!cut_sections(bytes, sections)) return std::unexpected("of another size than its header says");
    if (!digest_matches(bytes)) return std::unexpected("its digest does not match");
    return EntryView{sections[0],
                     sections[1],
                     sections[2],
                     sections[3],
                     sections[4],
                     sections[5],
                     bytes.substr(kDigestOffset, sizeof(Digest))};
}

bool holds_key(const EntryView& view, const EntryKey& key) {
    return view.identity == key.identity && view.source_digest == key.source &&
           (!key.maker || view.maker == *key.maker);
}

std::string entry_digest(const EntryKey& key) {
    // The identity's length distinguishes ("ab", "c") from ("a", "bc").
    std::string lead;
    put_little_endian(lead, kEntryVersion, 4);
    put_little_endian(lead, key.identity.size(), 8);
    return digest_hex(digest_of({lead, key.identity, key.source}));
}

std::string entry_name(const EntryKey& key, std::string_view maker) {
    return entry_digest(key) + '-' + digest_hex(maker).substr(0, kMakerDigits);
}

}  // namespace kvjit::rt
