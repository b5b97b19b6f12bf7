#include "bundle/encode.h"

#include <algorithm>

#include "bundle/pack.h"

namespace kvjit::rt {
namespace {

struct Packed {
    const BundleEntry* entry;
    BundleRecord record;
    std::string source, log;
};

/// Whether all lengths fit into a record, and are within the limits of readers.
bool fits(const BundleEntry& entry) {
    const auto& [code, texts] = entry;
    return code.identity.size() + code.provenance.size() + code.target.size() + code.image.size() <=
               kMaxBundleEntryBytes &&
           texts.source.size() + texts.log.size() <= kMaxBundleEntryBytes / 2;  // half: packing may make them larger
}

std::uint32_t length(const std::string& text) {
    return static_cast<std::uint32_t>(text.size());
}

Packed packed(const BundleEntry& entry) {
    const auto& [code, texts] = entry;
    Packed all{&entry, {}, pack(texts.source), pack(texts.log)};
    BundleRecord& record = all.record;
    record.identity = digest_of({code.identity});
    record.image_bytes = code.image.size();
    record.identity_bytes = length(code.identity);
    record.provenance_bytes = length(code.provenance);
    record.target_bytes = length(code.target);
    record.packed_source_bytes = length(all.source);
    record.packed_log_bytes = length(all.log);
    record.source_bytes = length(texts.source);
    record.log_bytes = length(texts.log);
    record.code = digest_of({code.identity, code.provenance, code.target, code.image});
    record.texts = digest_of({all.source, all.log});
    return all;
}

/// Gives each entry its place after the index. Returns the end of the last one.
std::uint64_t place(std::vector<Packed>& entries) {
    std::uint64_t end = kBundleHeaderBytes + entries.size() * kBundleRecordBytes;
    for (Packed& each : entries) {
        each.record.offset = end;
        end += each.record.code_bytes() + each.record.texts_bytes();
    }
    return end;
}

}  // namespace

std::expected<std::string, std::string> encode_bundle(std::uint32_t abi, std::span<const BundleEntry> entries) {
    std::vector<Packed> sorted;
    for (const BundleEntry& entry : entries) {
        if (!fits(entry)) return std::unexpected("an entry is too large for a bundle: " + entry.code.identity);
        sorted.push_back(packed(entry));
    }
    const auto key = [](const Packed& each) { return as_text(each.record.identity); };
    std::ranges::sort(sorted, {}, key);
    const auto twice = std::ranges::adjacent_find(sorted, {}, key);
    if (twice != sorted.end()) {
        return std::unexpected("two entries have one identity: " + twice->entry->code.identity);
    }
    BundleHeader header;
    header.abi = abi;
    header.entries = sorted.size();
    header.bytes = place(sorted);
    std::string index;
    for (const Packed& each : sorted) index += encode_record(each.record);
    header.index = digest_of({index});
    header.digest = header_digest(header);
    std::string bytes = encode_header(header) + index;
    bytes.reserve(header.bytes);
    for (const auto& [entry, record, source, log] : sorted) {
        const BundleCode& code = entry->code;
        for (const std::string* part : {&code.identity, &code.provenance, &code.target, &code.image, &source, &log}) {
            bytes += *part;
        }
    }
    return bytes;
}

std::expected<BundleEntry, std::string> read_entry(const Bundle& bundle, std::size_t entry) {
    auto code = bundle.code(entry);
    if (!code) return std::unexpected(code.error());
    auto texts = bundle.texts(entry);
    if (!texts) return std::unexpected(texts.error());
    return BundleEntry{*std::move(code), *std::move(texts)};
}

}  // namespace kvjit::rt
