#include "bundle/format.h"

#include <algorithm>
#include <ranges>

#include "little_endian.h"

namespace kvjit::rt {
namespace {

constexpr std::string_view kMagic{"\x89KVJB\r\n\x1a", 8};
constexpr std::size_t kDigestOffset = 64;
constexpr std::size_t kKeyOffset = kDigestOffset + sizeof(Digest);
constexpr std::size_t kSignatureOffset = kKeyOffset + sizeof(PublicKey);
static_assert(kSignatureOffset + sizeof(Signature) == kBundleHeaderBytes);

/// Removes fields from the front of the bytes.
class Reader {
public:
    explicit Reader(std::string_view bytes) : rest_(bytes) {}

    std::string_view take(std::size_t bytes) {
        const std::string_view taken = rest_.substr(0, bytes);
        rest_.remove_prefix(taken.size());
        return taken;
    }
    std::uint64_t number(std::size_t bytes) { return get_little_endian(take(bytes)); }
    std::uint32_t number32() { return static_cast<std::uint32_t>(number(4)); }
    template <std::size_t N>
    std::array<std::uint8_t, N> array() {
        std::array<std::uint8_t, N> value{};
        std::ranges::copy(take(N), value.begin());
        return value;
    }

private:
    std::string_view rest_;
};

template <std::size_t N>
void put(std::string& out, const std::array<std::uint8_t, N>& bytes) {
    out.append(reinterpret_cast<const char*>(bytes.data()), N);
}

/// The bytes of the header that its digest covers.
std::string encode_lead(const BundleHeader& header) {
    std::string lead{kMagic};
    put_little_endian(lead, kBundleVersion, 4);
    put_little_endian(lead, header.abi, 4);
    put_little_endian(lead, header.entries, 8);
    put_little_endian(lead, header.bytes, 8);
    put(lead, header.index);
    return lead;
}

std::unexpected<std::string> cut_short(std::uint64_t size, std::uint64_t whole) {
    return std::unexpected("is cut short: it has " + std::to_string(size) + " of " + std::to_string(whole) + " bytes");
}

std::unexpected<std::string> other_version(std::uint32_t version) {
    return std::unexpected("is of format version " + std::to_string(version) + "; this library reads version " +
                           std::to_string(kBundleVersion));
}

std::unexpected<std::string> bad_record(std::size_t i, const std::string& what) {
    return std::unexpected("has a bad index: record " + std::to_string(i) + ' ' + what);
}

/// Checks the image first: once it is bounded, no sum overflows.
bool is_too_large(const BundleRecord& record) {
    return record.image_bytes > kMaxBundleEntryBytes || record.code_bytes() > kMaxBundleEntryBytes ||
           record.texts_bytes() > kMaxBundleEntryBytes || record.source_bytes > kMaxBundleEntryBytes ||
           record.log_bytes > kMaxBundleEntryBytes;
}

}  // namespace

std::string encode_header(const BundleHeader& header) {
    std::string bytes = encode_lead(header);
    put(bytes, header.digest);
    put(bytes, header.key);
    put(bytes, header.signature);
    return bytes;
}

Digest header_digest(const BundleHeader& header) {
    return digest_of({encode_lead(header)});
}

std::string encode_record(const BundleRecord& record) {
    std::string bytes;
    put(bytes, record.identity);
    put_little_endian(bytes, record.offset, 8);
    put_little_endian(bytes, record.image_bytes, 8);
    for (const std::uint32_t part :
         {record.identity_bytes, record.provenance_bytes, record.target_bytes, record.packed_source_bytes,
          record.packed_log_bytes, record.source_bytes, record.log_bytes}) {
        put_little_endian(bytes, part, 4);
    }
    put(bytes, record.code);
    put(bytes, record.texts);
    return bytes;
}

std::expected<BundleHeader, std::string> decode_header(std::string_view bytes, std::uint64_t size) {
    if (bytes.size() >= kMagic.size() && !bytes.starts_with(kMagic)) return std::unexpected("is no bundle");
    if (bytes.size() < kBundleHeaderBytes) return cut_short(size, kBundleHeaderBytes);
    Reader in(bytes.substr(kMagic.size()));
    if (const std::uint32_t version = in.number32(); version != kBundleVersion) return other_version(version);
    BundleHeader header;
    header.abi = in.number32();
    header.entries = in.number(8);
    header.bytes = in.number(8);
    header.index = in.array<sizeof(Digest)>();
    header.digest = in.array<sizeof(Digest)>();
    header.key = in.array<sizeof(PublicKey)>();
    header.signature = in.array<sizeof(Signature)>();
    if (header.digest != header_digest(header)) return std::unexpected("has a damaged header: its digest differs");
    if (size < header.bytes) return cut_short(size, header.bytes);
    if (size > header.bytes) {
        return std::unexpected("has " + std::to_string(size - header.bytes) + " bytes past its end");
    }
    if (header.entries > (size - kBundleHeaderBytes) / kBundleRecordBytes) {
        return std::unexpected("has a bad header: an index of " + std::to_string(header.entries) +
                               " entries is larger than it");
    }
    return header;
}

std::expected<BundleIndex, std::string> BundleIndex::decode(const BundleHeader& header, std::string bytes) {
    if (bytes.size() != header.index_bytes()) return cut_short(bytes.size(), header.index_bytes());
    if (digest_of({bytes}) != header.index) return std::unexpected("has a damaged index: its digest differs");
    BundleIndex index(std::move(bytes));
    std::uint64_t end = kBundleHeaderBytes + header.index_bytes();
    for (std::size_t i = 0; i < index.size(); ++i) {
        const BundleRecord record = index[i];
        if (i > 0 && index.key(i) <= index.key(i - 1)) return bad_record(i, "is out of order");
        if (is_too_large(record)) return bad_record(i, "has an entry that is too large");
        if (record.offset != end) return bad_record(i, "has an entry that doesn't begin where the one before it ends");
        end += record.code_bytes() + record.texts_bytes();
        if (end > header.bytes) return bad_record(i, "has an entry past the end");
    }
    if (end != header.bytes) return std::unexpected("has a bad index: bytes past its last entry belong to none");
    return index;
}

BundleRecord BundleIndex::operator[](std::size_t i) const {
    Reader in(std::string_view(bytes_).substr(i * kBundleRecordBytes, kBundleRecordBytes));
    BundleRecord record;
    record.identity = in.array<sizeof(Digest)>();
    record.offset = in.number(8);
    record.image_bytes = in.number(8);
    for (std::uint32_t* part :
         {&record.identity_bytes, &record.provenance_bytes, &record.target_bytes, &record.packed_source_bytes,
          &record.packed_log_bytes, &record.source_bytes, &record.log_bytes}) {
        *part = in.number32();
    }
    record.code = in.array<sizeof(Digest)>();
    record.texts = in.array<sizeof(Digest)>();
    return record;
}

std::string_view BundleIndex::key(std::size_t i) const {
    return std::string_view(bytes_).substr(i * kBundleRecordBytes, sizeof(Digest));
}

std::optional<std::size_t> BundleIndex::find(const Digest& identity) const {
    const auto numbers = std::views::iota(std::size_t{0}, size());
    const auto found = std::ranges::lower_bound(numbers, as_text(identity), {}, [&](std::size_t i) { return key(i); });
    if (found == numbers.end() || key(*found) != as_text(identity)) return std::nullopt;
    return *found;
}

}  // namespace kvjit::rt
