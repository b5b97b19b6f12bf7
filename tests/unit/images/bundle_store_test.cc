// A bundle's bytes as a store: what it answers, what it says of damage, and whose bundles an engine takes.
#include "bundle/bundle_store.h"

#include "bundle/encode.h"
#include "bundle/signature.h"
#include "common/abi.h"
#include "fakes.h"

using namespace kvjit;
using namespace kvjit::rt;
using namespace kvjit::rt::test;

namespace {

const std::string kSpec = "op=Merge";

BundleEntry entry_for(const std::string& identity, const std::string& image) {
    return {{identity, "provenance", "target", image}, {"source", "log"}};
}

std::string merge_on(const gen::Target& target) {
    return identity_of(kSpec, KVJIT_PROGRAM_MERGE, target);
}

std::string bytes_of(const std::vector<BundleEntry>& entries, std::uint32_t abi = abi::kKernelAbi) {
    return *encode_bundle(abi, entries);
}

/// A bundle in memory, its log, and a request for Merge on both levels.
struct Setting {
    explicit Setting(std::string made) : bytes(std::move(made)) {
        const Log log = [this](kvjit_log_level, const std::string& message) { messages.push_back(message); };
        auto opened = open_bundle(bundle_in_memory(bytes), {"bundle x.kvjb", "x.kvjb", {}, log});
        REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
        store = *std::move(opened);
        Compiler& compiler = options.backends[0]->compiler();
        for (const Candidate& level : merge.candidates) wanted.emplace_back(level, compiler, options.templates);
    }

    World world;
    ImagesOptions options = options_over(world);
    std::string bytes;
    std::vector<std::string> messages;
    std::unique_ptr<Store> store;
    BothLevels merge;
    std::vector<Wanted> wanted;
};

/// A key of openssl's, by the last digits of its seed.
SecretKey key_of(const std::string& last) {
    return *parse_secret_key(
        "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9E" + last +
        "\n-----END PRIVATE KEY-----\n");
}

std::string signed_by(const SecretKey& key, const std::string& bytes) {
    BundleHeader header = *decode_header(bytes.substr(0, kBundleHeaderBytes), bytes.size());
    sign(header, key);
    return encode_header(header) + bytes.substr(kBundleHeaderBytes);
}

gen::Error refusal(const std::string& bytes, std::optional<PublicKey> key = {}) {
    const auto opened = open_bundle(bundle_in_memory(bytes), {"bundle x.kvjb", "x.kvjb", key, {}});
    REQUIRE(!opened.has_value());
    return opened.error();
}

}  // namespace

TEST_CASE("the best candidate is found by its identity alone") {
    Setting at(bytes_of({entry_for(merge_on(second()), "lesser"), entry_for(merge_on(best()), "best")}));
    const Answer answer = at.store->find(at.wanted);
    REQUIRE(std::holds_alternative<Held>(answer));
    CHECK(std::get<Held>(answer).which == 0);
    CHECK(std::get<Held>(answer).entry.object == "best");
    CHECK(at.world.identities == 0);
    Setting lesser(bytes_of({entry_for(merge_on(second()), "lesser")}));
    CHECK_FALSE(lesser.store->may_hold(lesser.wanted[0]));
    CHECK(lesser.store->may_hold(lesser.wanted[1]));
    CHECK(std::get<Held>(lesser.store->find(lesser.wanted)).which == 1);
    Setting empty(bytes_of({}));
    CHECK(std::holds_alternative<NotThere>(empty.store->find(empty.wanted)));
}

TEST_CASE("the parts of an entry that was handed out are read again, each for itself") {
    const std::string provenance = "source=0123;maker";
    Setting at(bytes_of({{{merge_on(best()), provenance, "target", "an image"}, {"a source", "a log"}}}));
    const Answer answer = at.store->find(at.wanted);
    const StoredEntry stored = std::get<Held>(answer).stored;
    CHECK(stored.place == "x.kvjb");
    CHECK(stored.source == "0123");
    const auto read = [&](EntryPart part) { return at.store->read(merge_on(best()), stored, part); };
    CHECK(*read(EntryPart::kProvenance) == provenance);
    CHECK(*read(EntryPart::kObject) == "an image");
    CHECK(*read(EntryPart::kSource) == "a source");
    CHECK(*read(EntryPart::kLog) == "a log");
    at.bytes.back() ^= 1;  // the log's
    for (const EntryPart part : {EntryPart::kSource, EntryPart::kLog}) {
        CHECK(read(part).error().status == KVJIT_BAD_FILE);
        CHECK(read(part).error().message.starts_with("bundle x.kvjb has a damaged entry 0: the digest of its texts"));
    }
    CHECK(*read(EntryPart::kObject) == "an image");
    at.bytes.back() ^= 1;
    at.bytes[at.bytes.find("an image")] ^= 1;
    for (const EntryPart part : {EntryPart::kProvenance, EntryPart::kObject}) {
        CHECK(read(part).error().status == KVJIT_BAD_FILE);
        CHECK(read(part).error().message.starts_with("bundle x.kvjb has a damaged entry 0: its digest differs"));
    }
    CHECK(*read(EntryPart::kLog) == "a log");
    CHECK(at.messages.empty());
}

TEST_CASE("a bundle that was made without sources says so, of logs too") {
    Setting at(bytes_of({{{merge_on(best()), "provenance", "target", "an image"}, {"", ""}}}));
    const Answer answer = at.store->find(at.wanted);
    const StoredEntry stored = std::get<Held>(answer).stored;
    CHECK(stored.source.empty());
    for (const EntryPart part : {EntryPart::kSource, EntryPart::kLog}) {
        const auto read = at.store->read(merge_on(best()), stored, part);
        REQUIRE(!read.has_value());
        CHECK(read.error().status == KVJIT_NOT_FOUND);
        CHECK(read.error().message == "bundle x.kvjb was made without sources and logs");
    }
}

TEST_CASE("a damaged entry is logged and can't be told; the next candidate serves") {
    Setting at(bytes_of({entry_for(merge_on(second()), "lesser"), entry_for(merge_on(best()), "the best")}));
    at.bytes[at.bytes.find("the best")] ^= 1;
    const Answer lesser = at.store->find(at.wanted);
    CHECK(std::get<Held>(lesser).which == 1);
    REQUIRE(at.messages.size() == 1);
    CHECK(at.messages[0].starts_with("bundle x.kvjb has a damaged entry "));
    CHECK_MESSAGE(at.messages[0].contains(": its digest differs; it is of merge for " + best().text() + " ("),
                  at.messages[0]);
    const Answer alone = at.store->find({at.wanted.data(), 1});
    CHECK(std::get<Failed>(alone).reason == at.messages[0]);
}

TEST_CASE("what a bundle has of the same program for others is told") {
    const std::string own = merge_on(best());
    const auto with = [&](const std::string& from, const std::string& to) {
        std::string text = own;
        const std::size_t at = text.find(from);
        REQUIRE(at != text.npos);
        return text.replace(at, from.size(), to);
    };
    const std::string abi = std::to_string(abi::kKernelAbi);
    const auto near = [](const std::string& identity) {
        Setting at(bytes_of({entry_for("something else", ""), entry_for(identity, "")}));
        return at.store->near_miss(at.wanted[0]);
    };
    CHECK(near(with("x86-64-v3", "x86-64-v4")) == "bundle x.kvjb has it for x86_64-unknown-linux-gnu:x86-64-v4");
    CHECK(near(with(";abi=" + abi, ";abi=77")) ==
          "bundle x.kvjb has it for kernel ABI 77 (this library's is " + abi + ")");
    CHECK(near(with(";revision=1", ";revision=99")) == "bundle x.kvjb has it of revision 99 (this library's is 1)");
    // Revisions of different algorithms say nothing of each other.
    CHECK(near(with(";variant=simd;revision=1", ";variant=other;revision=99")) ==
          "bundle x.kvjb has it of variant other");
    CHECK(near(with("kHeadDim=", "kHeadDim=1")) == "");
    CHECK(near(with("x86_64-unknown-linux-gnu:x86-64-v3", "nvptx64-nvidia-cuda:sm_80")) == "");
}

TEST_CASE("a bundle of another kernel ABI is refused, and so is what is none") {
    const gen::Error other = refusal(bytes_of({}, abi::kKernelAbi + 1));
    CHECK(other.status == KVJIT_BAD_FILE);
    CHECK(other.message == "bundle x.kvjb is for kernel ABI " + std::to_string(abi::kKernelAbi + 1) +
                               "; this library's is " + std::to_string(abi::kKernelAbi) +
                               ": make the bundle with this version of kvjit");
    CHECK(refusal("hello").message == "bundle x.kvjb is cut short: it has 5 of 192 bytes");
    CHECK(open_bundle(std::unexpected("can't be opened: why"), {"bundle y", "y", {}, {}}).error().message ==
          "bundle y can't be opened: why");
}

TEST_CASE("an engine that wants a key takes bundles that it signed, and names it to others") {
    const SecretKey mine = key_of("dVhC"), theirs = key_of("AAAA");
    const std::string bytes = bytes_of({entry_for("identity", "image")});
    const std::string wants = "; this engine takes bundles signed by key " + print_public_key(public_key(mine));
    CHECK(refusal(bytes, public_key(mine)).message == "bundle x.kvjb is not signed" + wants);
    CHECK(refusal(signed_by(theirs, bytes), public_key(mine)).message ==
          "bundle x.kvjb is signed by key " + print_public_key(public_key(theirs)) + wants);
    const std::string right = signed_by(mine, bytes);
    CHECK(open_bundle(bundle_in_memory(right), {"bundle x.kvjb", "x.kvjb", public_key(mine), {}}).has_value());
    CHECK(open_bundle(bundle_in_memory(right), {"bundle x.kvjb", "x.kvjb", {}, {}}).has_value());
    CHECK(open_bundle(bundle_in_memory(bytes), {"bundle x.kvjb", "x.kvjb", {}, {}}).has_value());
}
