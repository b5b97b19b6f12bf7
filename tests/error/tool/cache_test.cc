// `kvjit cache`, `kvjit doctor` and `kvjit spec`.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <utime.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "child.h"
#include "support/read_file.h"
#include "support/temporary_folder.h"

namespace kvjit::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// A disk cache with the entries of some programs, which the command finds as its own while this object lives.
class Filled {
public:
    Filled() {
        if (const char* before = getenv("KVJIT_CACHE_DIR")) before_ = before;
        setenv("KVJIT_CACHE_DIR", path().c_str(), 1);
        const ChildResult made = run_kvjit({"bundle", "create", folder_.path("out.kvjb"), "op=Merge,head_dim=64",
                                            "op=KeyValueCache,head_dim=64", "--targets", "x86-64-v3"});
        REQUIRE_MESSAGE(made.exit_code == 0, made.err);
    }
    ~Filled() { before_.empty() ? unsetenv("KVJIT_CACHE_DIR") : setenv("KVJIT_CACHE_DIR", before_.c_str(), 1); }
    Filled(const Filled&) = delete;
    Filled& operator=(const Filled&) = delete;

    std::string path() const { return folder_.path("cache"); }
    std::vector<fs::path> entries() const {
        std::vector<fs::path> all;
        for (const auto& file : fs::recursive_directory_iterator(path())) {
            if (file.path().extension() == ".kvjit") all.push_back(file.path());
        }
        std::ranges::sort(all);
        return all;
    }
    static void set_age(const fs::path& file, std::time_t seconds) {
        const utimbuf times = {std::time(nullptr) - seconds, std::time(nullptr) - seconds};
        REQUIRE(utime(file.c_str(), &times) == 0);
    }

private:
    TemporaryFolder folder_;
    std::string before_;
};

Json json_of(const std::vector<std::string>& arguments) {
    const ChildResult shown = run_kvjit(arguments);
    CHECK_MESSAGE(shown.err.empty(), shown.err);
    return Json::parse(shown.out);
}

void change_byte(const fs::path& file, std::streamoff at) {
    std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekg(at);
    const char old = static_cast<char>(bytes.get());
    bytes.seekp(at);
    bytes.put(static_cast<char>(old ^ 1));
}

TEST_CASE("the cache's path, and its entries with sizes, ages and programs; listing is no use of them") {
    const Filled cache;
    CHECK(run_kvjit({"cache", "path"}).out == cache.path() + "\n");
    const auto entries = cache.entries();
    REQUIRE(entries.size() == 3);
    Filled::set_age(entries[0], 3 * 86400);
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
}

TEST_CASE("verify names the entries that are bad, and why") {
    const Filled cache;
    CHECK(run_kvjit({"cache", "verify"}).out == cache.path() + ": 3 of 3 entries are whole\n");
    const auto entries = cache.entries();
    change_byte(entries[0], 300);
    fs::resize_file(entries[1], 50);
    // Another entry's bytes under this name.
    fs::path renamed = entries[2];
    renamed.replace_filename(renamed.filename().string().substr(0, 64) + "-0123456789abcdef.kvjit");
    fs::rename(entries[2], renamed);
    const ChildResult bad = run_kvjit({"cache", "verify"});
    CHECK(bad.exit_code == 1);
    CHECK(bad.out == cache.path() + ": 0 of 3 entries are whole\n");
    CHECK_MESSAGE(mentions(bad.err, entries[0].string() + " is bad: its digest"), bad.err);
    CHECK_MESSAGE(mentions(bad.err, entries[1].string() + " is bad: "), bad.err);
    CHECK_MESSAGE(mentions(bad.err, renamed.string() + " has another entry's name"), bad.err);
    CHECK(json_of({"cache", "verify", "--json"})["bad"].size() == 3);
    CHECK(cache.entries().size() == 3);
}

TEST_CASE("prune removes by age and by size, the least recently used first; --dry-run removes nothing") {
    const Filled cache;
    const auto entries = cache.entries();
    Filled::set_age(entries[0], 40 * 86400);
    Filled::set_age(entries[1], 10 * 86400);
    CHECK(mentions(run_kvjit({"cache", "prune", "--max-age", "30d", "--dry-run"}).out, ": 1 files, "));
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
    const Filled cache;
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
             {{"prune", "--max-size", "99999999999999999999"}, "--max-size is"},
             {{"prune", "--max-size", "9000000000000000000G"}, "--max-size is"},
             {{"list", "--cache-dir", ""}, "there is no disk cache"},
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

// ---- doctor --------------------------------------------------------------------------------------------------------

Json finding(const Json& all, const std::string& what, const std::string& health) {
    for (const Json& each : all) {
        if (each["what"] == what && each["health"] == health) return each;
    }
    return {};
}

TEST_CASE("doctor finds what is there, and says what is wrong with a fix") {
    const Filled cache;
    const Json good = json_of({"doctor", "--json"});
    for (const char* what : {"kvjit", "CPU", "target", "compiler", "disk cache", "environment"}) {
        CHECK_MESSAGE(!finding(good, what, "ok").is_null(), what);
    }
    CHECK(mentions(finding(good, "disk cache", "ok")["text"], "3 entries"));
    for (const Json& each : good) CHECK((each["health"] == "ok" || !each["fix"].get<std::string>().empty()));

    setenv("KVJIT_PREF", "1", 1);
    const ChildResult variable = run_kvjit({"doctor"});
    unsetenv("KVJIT_PREF");
    CHECK(variable.exit_code == 1);
    CHECK(mentions(variable.out, "the nearest is KVJIT_PERF\n"));
    CHECK(mentions(variable.out, "fix: unset KVJIT_PREF"));

    change_byte(cache.entries()[0], 300);
    const ChildResult bad = run_kvjit({"doctor", "--json"});
    CHECK(bad.exit_code == 1);
    CHECK(mentions(finding(Json::parse(bad.out), "disk cache", "problem")["fix"], "kvjit cache verify"));
}

TEST_CASE("doctor reads bundles, and misses a compiler without calling that a problem") {
    const Filled cache;
    const TemporaryFolder folder;
    const std::string none = folder.write("none.kvjb", "no bundle");
    CHECK(run_kvjit({"doctor", "--bundle", none}).exit_code == 1);
    const std::string good = folder.path("good.kvjb");
    REQUIRE(run_kvjit({"bundle", "create", good, "op=Merge,head_dim=64", "--targets", "x86-64"}).exit_code == 0);
    const Json json = json_of({"doctor", "--json", "--bundle", good});
    CHECK(mentions(finding(json, "bundle", "ok")["text"], "1 programs, 1 for this CPU"));
    setenv("KVJIT_COMPILER", "/nowhere.so", 1);
    const ChildResult without = run_kvjit({"doctor", "--json"});
    unsetenv("KVJIT_COMPILER");
    CHECK(!finding(Json::parse(without.out), "compiler", "note").is_null());
}

// ---- spec ----------------------------------------------------------------------------------------------------------

TEST_CASE("explain tells of each field that counts its value and where that is from") {
    const ChildResult shown = run_kvjit({"spec", "explain", "layout=vllm:LBNHC", "page_size=16"});
    CHECK(shown.exit_code == 0);
    CHECK(shown.out.starts_with("op=MultiHeadCacheAttention,cache_mode=block_table,page_size=16,layout=LNTH2D\n"));
    const Json fields = json_of({"spec", "explain", "layout=vllm:LBNHC,page_size=16", "--json"})["fields"];
    const auto from = [&](const std::string& name) {
        for (const Json& field : fields) {
            if (field["field"] == name)
                return field["from"].get<std::string>() + " " + (field["counts"] ? "counts" : "doesn't");
        }
        return std::string();
    };
    CHECK(from("page_size") == "given counts");
    CHECK(from("cache_mode") == "by the layout's name counts");
    CHECK(from("head_dim") == "default counts");
    CHECK(from("t3") == "default doesn't");
    CHECK(!mentions(shown.out, "\nt3 "));
    CHECK(mentions(run_kvjit({"spec", "explain", "op=Merge", "--all"}).out, "doesn't count"));
    CHECK(mentions(run_kvjit({"spec", "explain", "head_dim=12"}).err, "head_dim is \"12\""));
}

TEST_CASE("fields, ops and values are listed") {
    CHECK(run_kvjit({"spec", "list", "values", "t3", "--names"}).out == "auto\nf32\nf16\nbf16\n");
    CHECK(mentions(run_kvjit({"spec", "list", "values", "head_dim"}).out, "a multiple of 8 from 8 to 512"));
    CHECK(mentions(run_kvjit({"spec", "list", "ops"}).out, "\nMerge  "));
    CHECK(mentions(run_kvjit({"spec", "list", "fields", "--names"}).out, "\nquant_group\n"));
    CHECK(json_of({"spec", "list", "layouts", "--json"})[0].contains("axes"));
    CHECK(mentions(run_kvjit({"spec", "list", "values"}).err, "FIELD is missing"));
    CHECK(mentions(run_kvjit({"spec", "list", "values", "hed_dim"}).err, "did you mean head_dim?"));
    CHECK(mentions(run_kvjit({"spec", "list", "ops", "t1"}).err, "'t1' is one word too many"));
}

}  // namespace
}  // namespace kvjit::test
