// `kvjit cache`.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "child.h"
#include "filled_cache.h"
#include "support/temporary_folder.h"

namespace kvjit::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

TEST_CASE("the cache's path, and its entries with sizes, ages and programs; listing is no use of them") {
    const FilledCache cache;
    CHECK(run_kvjit({"cache", "path"}).out == cache.path() + "\n");
    const auto entries = cache.entries();
    REQUIRE(entries.size() == 3);
    FilledCache::set_age(entries[0], 3 * 86400);
    const auto before = fs::last_write_time(entries[0]);
    const ChildResult listed = run_kvjit({"cache", "list"});
    CHECK(listed.exit_code == 0);
    for (const char* part :
         {"merge/simd", "store/simd", "load/simd", "3 days", "x86-64-v3", "kHeadDim=64", "3 entries"}) {
        CHECK_MESSAGE(mentions(listed.out, part), listed.out);
    }
    const Json json = json_of({"cache", "list", "--json"});
    CHECK(json["folder"] == cache.path());
    CHECK(json["entries"].size() == 3);
    CHECK(json["entries"][2]["file"] == fs::relative(entries[0], cache.path()).string());
    std::int64_t bytes = 0;
    for (const auto& entry : entries) bytes += static_cast<std::int64_t>(fs::file_size(entry));
    CHECK(json["bytes"] == bytes);
    CHECK(fs::last_write_time(entries[0]) == before);
    const Json images = json_of({"inspect", "op=Merge,head_dim=64", "--target", "x86-64-v3", "--images", "--json"});
    CHECK_MESSAGE(mentions(listed.out, "  " + images["programs"][0]["image"].get<std::string>() + "  "), listed.out);
}

TEST_CASE("verify names the entries that are bad, and why") {
    const FilledCache cache;
    CHECK(run_kvjit({"cache", "verify"}).out == cache.path() + ": 3 entries, 0 bad\n");
    const auto entries = cache.entries();
    change_byte(entries[0], 300);
    fs::resize_file(entries[1], 50);
    // Another entry's bytes under this name.
    fs::path renamed = entries[2];
    renamed.replace_filename(renamed.filename().string().substr(0, 64) + "-0123456789abcdef.kvjit");
    fs::rename(entries[2], renamed);
    const ChildResult bad = run_kvjit({"cache", "verify"});
    CHECK(bad.exit_code == 1);
    CHECK(bad.out == cache.path() + ": 3 entries, 3 bad\n");
    CHECK_MESSAGE(mentions(bad.err, entries[0].string() + " is bad: its digest"), bad.err);
    CHECK_MESSAGE(mentions(bad.err, entries[1].string() + " is bad: "), bad.err);
    CHECK_MESSAGE(mentions(bad.err, renamed.string() + " has another entry's name"), bad.err);
    CHECK(json_of({"cache", "verify", "--json"})["bad"].size() == 3);
    CHECK(cache.entries().size() == 3);
}

TEST_CASE("prune removes by age and by size, the least recently used first; --dry-run removes nothing") {
    const FilledCache cache;
    const auto entries = cache.entries();
    FilledCache::set_age(entries[0], 40 * 86400);
    FilledCache::set_age(entries[1], 10 * 86400);
    CHECK(mentions(run_kvjit({"cache", "prune", "--max-age", "30d", "--dry-run"}).out, ": 1 file, "));
    CHECK(cache.entries().size() == 3);
    CHECK(run_kvjit({"cache", "prune", "--max-age", "30d"}).exit_code == 0);
    CHECK(!fs::exists(entries[0]));
    CHECK(fs::exists(entries[1]));
    const auto room = std::to_string(fs::file_size(entries[2]) + 1);
    CHECK(run_kvjit({"cache", "prune", "--max-size", room}).exit_code == 0);
    CHECK(!fs::exists(entries[1]));
    CHECK(fs::exists(entries[2]));
    CHECK(run_kvjit({"cache", "prune", "--max-size", "1G", "--max-age", "90m"}).exit_code == 0);
    CHECK(fs::exists(entries[2]));
}

TEST_CASE("clear removes all that is kvjit's, and nothing else") {
    const FilledCache cache;
    const auto entries = cache.entries();
    const fs::path shard = entries[0].parent_path();
    const std::string digest = entries[0].filename().string().substr(0, 64);
    const std::vector<fs::path> strange = {fs::path(cache.path()) / "notes.txt", shard / "notes.txt",
                                           shard / (digest + ".txt"), fs::path(cache.path()) / entries[0].filename()};
    for (const fs::path& file : strange) std::ofstream(file) << "mine";
    fs::create_directory(fs::path(cache.path()) / "zz");
    const fs::path left = shard / (digest + "-0123456789abcdef.kvjit.1.2.3.tmp");
    std::ofstream(left) << "half";
    const ChildResult cleared = run_kvjit({"cache", "clear"});
    CHECK_MESSAGE(cleared.exit_code == 0, cleared.err);
    CHECK_MESSAGE(mentions(cleared.out, ": 4 files, "), cleared.out);
    CHECK_MESSAGE(mentions(cleared.out, "5 that are not kvjit's stay"), cleared.out);
    for (const fs::path& entry : entries) CHECK(!fs::exists(entry));
    CHECK(!fs::exists(left));
    for (const fs::path& file : strange) CHECK(fs::exists(file));
    CHECK(fs::exists(fs::path(cache.path()) / "zz"));
}

TEST_CASE("bad limits and folders are refused; one that isn't there is not made") {
    const TemporaryFolder folder;
    for (const auto& [arguments, said] : {
             std::pair<std::vector<std::string>, std::string>{{"prune"}, "--max-age or --max-size is missing"},
             {{"prune", "--max-age", "3x"}, "--max-age is '3x'; it takes a whole number of s, m, h or d"},
             {{"prune", "--max-age", "-3d"}, "--max-age is '-3d'"},
             {{"prune", "--max-age", "30"}, "--max-age is '30'"},
             {{"prune", "--max-age", "106751991167301d"},
              "--max-age is '106751991167301d'; it takes at most 106751991167300d;"},
             {{"prune", "--max-size", "99999999999999999999"},
              "--max-size is '99999999999999999999'; it takes at most 9223372036854775807;"},
             {{"prune", "--max-size", "9000000000000000000000G"}, "it takes at most 8589934591G;"},
             {{"prune", "--max-size", "9000000000000000000000Q"}, "it takes a whole number of bytes, K, M or G"},
             {{"list", "--cache-dir", ""}, "--cache-dir is ''; it takes the name of a folder"},
             {{"lst"}, "did you mean list?"},
         }) {
        std::vector<std::string> all = {"cache"};
        all.insert(all.end(), arguments.begin(), arguments.end());
        const ChildResult refused = run_kvjit(all);
        CHECK(refused.exit_code == 2);
        CHECK_MESSAGE(mentions(refused.err, said), refused.err);
    }
    const std::string absent = folder.path("absent");
    CHECK(run_kvjit({"cache", "list", "--cache-dir", absent}).out == absent + ": not there yet\n");
    CHECK(run_kvjit({"cache", "clear", "--cache-dir", absent}).exit_code == 0);
    CHECK(!fs::exists(absent));
    const std::string open = folder.path("open");
    fs::create_directory(open);
    chmod(open.c_str(), 0777);
    const ChildResult refused = run_kvjit({"cache", "clear", "--cache-dir", open});
    CHECK(refused.exit_code == 2);
    CHECK(mentions(refused.err, "other users may write to it"));
}

TEST_CASE("where there is no cache, the cause is told, and the same one by kvjit doctor") {
    const auto check_told = [](const std::string& why) {
        for (const auto* command : {"path", "list"}) {
            const ChildResult refused = run_kvjit({"cache", command});
            CHECK(refused.exit_code == 2);
            CHECK_MESSAGE(mentions(refused.err, "there is no disk cache: " + why), refused.err);
        }
        CHECK(mentions(run_kvjit({"doctor"}).out, "none: " + why));
    };
    const Variable folder("KVJIT_CACHE_DIR", "");
    check_told("KVJIT_CACHE_DIR is empty");
}

}  // namespace
}  // namespace kvjit::test
