// Any bytes as an entry of the disk cache: they are refused, or are what encoding their parts gives. Once as they are,
// and once with the digest put right, as whoever made them on purpose would.
#include "digest.h"
#include "disk_cache/entry.h"
#include "fuzz_target.h"

namespace {

using namespace kvjit::rt;
using kvjit::test::require;

constexpr std::size_t kDigestOffset = 64;  // docs/cache_format.md

std::string mended(std::string bytes) {
    if (bytes.size() < kEntryHeaderBytes) return bytes;
    const std::string_view all = bytes;
    const Digest digest = digest_of({all.substr(0, kDigestOffset), all.substr(kEntryHeaderBytes)});
    return bytes.replace(kDigestOffset, digest.size(), as_text(digest));
}

void read_entry(const std::string& bytes) {
    const auto view = decode_entry(bytes);
    if (!view) return require(!view.error().empty(), "what is refused is refused with a reason");
    const std::string maker(view->maker);
    const EntryKey key{std::string(view->identity), std::string(view->source_digest), maker};
    require(holds_key(*view, key), "an entry holds its own key");
    require(entry_name(key, maker).starts_with(entry_digest(key)), "an entry's name begins with its key's digest");
    const Entry parts{std::string(view->object), std::string(view->source), std::string(view->log)};
    require(encode_entry(key, parts) == bytes, "an entry is what encoding its parts gives");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string bytes = kvjit::test::as_text(data, size);
    read_entry(bytes);
    read_entry(mended(bytes));
    return 0;
}

std::string kvjit::test::good_input(std::uint64_t number) {
    const std::string maker(number / 50 % 5, 'm');
    return encode_entry({"identity " + std::to_string(number % 4), std::string(64, 'd'), maker},
                        {std::string(number % 50, 'o'), number % 2 == 0 ? "source" : "", "log"});
}
