#include "bundle/bundle.h"

#include "bundle/pack.h"
#include "bundle/signature.h"
#include "generator/identity.h"
#include "generator/program.h"

namespace kvjit::rt {
namespace {

/// `name`: Bundle::name_of's clause about the entry, or "".
std::unexpected<std::string> damaged(std::size_t entry, const std::string& what, const std::string& name) {
    return std::unexpected("has a damaged entry " + std::to_string(entry) + ": " + what + name +
                           " (changed since the bundle was opened, or damaged before)");
}

/// Removes and returns the first `bytes` of `rest`.
std::string_view take(std::string_view& rest, std::size_t bytes) {
    const std::string_view taken = rest.substr(0, bytes);
    rest.remove_prefix(taken.size());
    return taken;
}

}  // namespace

std::expected<Bundle, std::string> Bundle::open(std::unique_ptr<BundleBytes> bytes) {
    const auto head = bytes->read(0, kBundleHeaderBytes);
    if (!head) return std::unexpected(head.error());
    const auto header = decode_header(*head, bytes->size());
    if (!header) return std::unexpected(header.error());
    if (auto right = check_signature(*header); !right) return std::unexpected(right.error());
    auto read = bytes->read(kBundleHeaderBytes, header->index_bytes());
    if (!read) return std::unexpected(read.error());
    auto index = BundleIndex::decode(*header, *std::move(read));
    if (!index) return std::unexpected(index.error());
    return Bundle(std::move(bytes), *header, *std::move(index));
}

std::optional<std::size_t> Bundle::find(std::string_view identity) const {
    return index_.find(digest_of({identity}));
}

std::expected<BundleCode, std::string> Bundle::code(std::size_t entry) const {
    const BundleRecord record = index_[entry];
    const std::size_t before_image = record.code_bytes() - record.image_bytes;
    const auto texts = bytes_->read(record.offset, before_image);
    if (!texts) return std::unexpected(texts.error());
    auto image = bytes_->read(record.offset + before_image, record.image_bytes);  // memory of its own is aligned
    if (!image) return std::unexpected(image.error());
    if (texts->size() + image->size() != record.code_bytes()) return damaged(entry, "it is cut short", name_of(entry));
    if (digest_of({*texts, *image}) != record.code) return damaged(entry, "its digest differs", name_of(entry));
    std::string_view rest = *texts;
    const std::string_view identity = take(rest, record.identity_bytes);
    if (digest_of({identity}) != record.identity) return damaged(entry, "it is another program's", "");
    const std::string_view provenance = take(rest, record.provenance_bytes);
    return BundleCode{std::string(identity), std::string(provenance), std::string(rest), *std::move(image)};
}

std::expected<BundleTexts, std::string> Bundle::texts(std::size_t entry) const {
    const BundleRecord record = index_[entry];
    const auto packed = bytes_->read(record.offset + record.code_bytes(), record.texts_bytes());
    if (!packed) return std::unexpected(packed.error());
    if (packed->size() != record.texts_bytes()) return damaged(entry, "it is cut short", name_of(entry));
    if (digest_of({*packed}) != record.texts) return damaged(entry, "the digest of its texts differs", name_of(entry));
    std::string_view rest = *packed;
    auto source = unpack(take(rest, record.packed_source_bytes), record.source_bytes);
    auto log = unpack(rest, record.log_bytes);
    if (!source || !log) return damaged(entry, "its texts can't be unpacked", name_of(entry));
    return BundleTexts{*std::move(source), *std::move(log)};
}

std::expected<std::string, std::string> Bundle::identity(std::size_t entry) const {
    const BundleRecord record = index_[entry];
    auto text = bytes_->read(record.offset, record.identity_bytes);
    if (!text) return text;
    if (digest_of({*text}) != record.identity) return damaged(entry, "its identity differs", "");
    return text;
}

std::string Bundle::name_of(std::size_t entry) const {
    const auto text = identity(entry);
    if (!text) return "";
    const auto parts = gen::parse_identity(*text);
    return parts ? "; it is of " + std::string(gen::label_of(parts->program)) + " for " + parts->target : "";
}

}  // namespace kvjit::rt
