// What a process with a warm disk cache does, and does not do; and that what it runs really comes from there.
#include <doctest/doctest.h>

#include <map>

#include "call.h"
#include "disk_cache/entry.h"
#include "fixture.h"

using namespace kvjit::test;

namespace {

/// Paths of a cache's entries by their programs' identities.
std::map<std::string, std::string> entries(const TemporaryFolder& folder) {
    std::map<std::string, std::string> found;
    for (const std::string& path : files_in(folder.path(), ".kvjit")) {
        const std::string bytes = read_file(path);
        const auto view = kvjit::rt::decode_entry(bytes);
        REQUIRE(view);
        found[std::string(view->identity)] = path;
    }
    return found;
}

/// Puts the object of `donor`'s entry under the whole key of the one at `path`, digest and all.
void transplant_object(const std::string& path, const std::string& donor) {
    const std::string bytes = read_file(path), donor_bytes = read_file(donor);
    const auto view = kvjit::rt::decode_entry(bytes);
    const auto donor_view = kvjit::rt::decode_entry(donor_bytes);
    REQUIRE(view);
    REQUIRE(donor_view);
    const kvjit::rt::EntryKey key{std::string(view->identity), std::string(view->source_digest),
                                  std::string(view->maker)};
    write_file(path, kvjit::rt::encode_entry(key, {std::string(donor_view->object), std::string(view->source), ""}));
}

}  // namespace

TEST_CASE("a warm disk cache is used without Clang, and nothing is ever writable and executable") {
    const TemporaryFolder cache;
    const Report cold = run_child(cache.path());
    REQUIRE(cold["status"] == "KVJIT_OK");
    CHECK(cold.number("compiles") == kCallPrograms);
    CHECK(cold.number("disk_hits") == 0);
    CHECK(cold.number("libkvjit_compiler") > 0);
    CHECK(cold.number("rwx") == 0);

    const Report warm = run_child(cache.path());
    REQUIRE(warm["status"] == "KVJIT_OK");
    CHECK(warm.number("compiles") == 0);
    CHECK(warm.number("disk_hits") == kCallPrograms);
    CHECK(warm["output"] == cold["output"]);
    for (const char* library : {"libkvjit_compiler", "rwx"}) {
        CAPTURE(library);
        CHECK(warm.number(library) == 0);
    }
}

TEST_CASE("a damaged entry is compiled again, and then found") {
    const TemporaryFolder cache;
    const Report cold = run_child(cache.path());
    REQUIRE(files_in(cache.path(), ".kvjit").size() == kCallPrograms);
    for (const std::string& path : files_in(cache.path(), ".kvjit")) {
        std::string bytes = read_file(path);
        bytes[bytes.size() / 2] ^= 1;
        write_file(path, bytes);
    }
    const Report damaged = run_child(cache.path());
    CHECK(damaged.number("compiles") == kCallPrograms);
    CHECK(damaged.number("disk_hits") == 0);
    CHECK(damaged["output"] == cold["output"]);
    CHECK(run_child(cache.path()).number("disk_hits") == kCallPrograms);
}

TEST_CASE("an entry that was cut short is compiled again") {
    const TemporaryFolder cache;
    run_child(cache.path());
    const std::string path = files_in(cache.path(), ".kvjit").front();
    write_file(path, read_file(path).substr(0, 100));
    const Report report = run_child(cache.path());
    CHECK(report["status"] == "KVJIT_OK");
    CHECK(report.number("compiles") == 1);
    CHECK(report.number("disk_hits") == kCallPrograms - 1);
}

TEST_CASE("what lies on disk is what runs") {
    const TemplateFolder templates;
    write_file(templates.path("cpu/store.cc"), kIdleStore);
    const TemporaryFolder cache, idle_cache;
    const Report cold = run_child(cache.path());
    const Report idle = run_child(idle_cache.path(), {"KVJIT_TEMPLATE_DIR=" + templates.path()});
    REQUIRE(idle["status"] == "KVJIT_OK");
    REQUIRE(idle["output"] != cold["output"]);

    const auto donors = entries(idle_cache);
    for (const auto& [identity, path] : entries(cache)) {
        if (identity.starts_with("store;")) transplant_object(path, donors.at(identity));
    }
    const Report tampered = run_child(cache.path());
    CHECK(tampered.number("compiles") == 0);
    CHECK(tampered["output"] == idle["output"]);
}

TEST_CASE("the disk cache is pruned to KVJIT_CACHE_MAX_BYTES") {
    const TemporaryFolder cache;
    CHECK(run_child(cache.path(), {"KVJIT_CACHE_MAX_BYTES=0"}).number("compiles") == kCallPrograms);
    CHECK(run_child(cache.path()).number("compiles") > 0);
    CHECK(run_child(cache.path()).number("compiles") == 0);
}
