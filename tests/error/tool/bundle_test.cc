// What `kvjit bundle` says about its arguments and about bundles that are none, or no longer.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "child.h"
#include "support/read_file.h"
#include "support/temporary_folder.h"

namespace kvjit::test {
namespace {

constexpr char kKey[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n"
    "-----END PRIVATE KEY-----\n";
constexpr char kPublicKey[] = "19bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1";
constexpr char kOtherKey[] = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";

/// A folder with bundles of small programs.
struct Bundles {
    Bundles() {
        create(one, {"op=Merge,head_dim=64"});
        create(two, {"op=Merge,head_dim=64", "op=Merge,head_dim=128"});
    }
    void create(const std::string& path, std::vector<std::string> specs,
                const std::string& targets = "x86-64-v3") const {
        std::vector<std::string> arguments = {"bundle", "create", path, "--targets", targets};
        arguments.insert(arguments.end(), specs.begin(), specs.end());
        const ChildResult made = run_kvjit(arguments);
        REQUIRE_MESSAGE(made.exit_code == 0, made.err);
    }

    TemporaryFolder folder;
    std::string one = folder.path("one.kvjb"), two = folder.path("two.kvjb"), out = folder.path("out.kvjb");
};

TEST_CASE("each command has help with examples") {
    CHECK(mentions(run_kvjit({"help", "bundle"}).out, "Examples:"));
    for (const char* command : {"create", "list", "verify", "extract", "merge", "diff", "sign"}) {
        CAPTURE(command);
        const ChildResult help = run_kvjit({"bundle", command, "--help"});
        CHECK(help.exit_code == 0);
        CHECK(mentions(help.out, "Example"));
        CHECK(mentions(help.out, "Exit status:\n  0 "));
        CHECK(mentions(help.out, std::string("kvjit bundle ") + command));
    }
}

TEST_CASE("bad arguments are refused with status 2, and nothing is written") {
    const TemporaryFolder folder;
    const std::string out = folder.path("out.kvjb");
    const std::string bad_specs = folder.write("specs.txt", "op=Merge\n\nhead_dim=12 # bad\n");
    for (const auto& [arguments, named] :
         {std::pair<std::vector<std::string>, std::string>{{},
                                                           "a command of kvjit bundle is missing; it takes create,"},
          {{"fry"}, "'fry' is no command of kvjit bundle"},
          {{"fry", "--help"}, "'fry' is no command of kvjit bundle"},
          {{"create"}, "OUT"},
          {{"create", out, "op=Merge"}, "--targets"},
          {{"create", out, "--targets", "x86-64-v3"}, "there is no spec to make kernels of"},
          {{"create", out, "op=Merge", "--targets", "x86-64-v9"}, "x86-64-v9"},
          {{"create", out, "op=Merge", "--targets", "x86-64-v3,,host"},
           "--targets is 'x86-64-v3,,host'; it has an empty"},
          {{"create", out, "op=Merge", "--targets", ",host"}, "--targets is ',host'; it has an empty name"},
          {{"create", out, "op=Merge", "--targets", "host,"}, "--targets is 'host,'; it has an empty name"},
          {{"create", out, "op=Merge", "--targets", "host", "--targets", ""}, "--targets is ''; it has an empty name"},
          {{"create", out, "op=Merge,head_dim=12", "--targets", "x86-64-v3"}, "head_dim"},
          {{"create", out, "--specs", bad_specs, "--targets", "x86-64-v3"},
           "specs.txt: KVJIT_BAD_SPEC: line 3: head_dim"},
          {{"create", out, "--specs", folder.path("none"), "--targets", "x86-64-v3"}, "No such file"},
          {{"create", out, "--specs", folder.path(), "--targets", "x86-64-v3"}, "directory"},
          {{"create", out, "head_dim=512", "--targets", "sm_80"}, "no target can have op="},
          {{"create", out, "op=Merge", "--targets", "x86-64-v3", "-j", "-1"}, "--jobs"},
          {{"create", out, "op=Merge", "--targets", "x86-64-v3", "--key", bad_specs}, "is no private Ed25519 key"},
          {{"create", folder.path("no/out.kvjb"), "op=Merge", "--targets", "x86-64-v3"}, "can't be written"},
          {{"list", folder.path("none")}, "can't be opened"},
          {{"list", bad_specs}, "is no bundle"},
          {{"verify", folder.path("none")}, "can't be opened"},
          {{"verify", bad_specs, "--key", "12"}, "--key is '12'"},
          {{"verify", bad_specs, "--key", ""}, "--key is ''"},
          {{"create", out, "op=Merge,head_dim=8", "--targets", "x86-64-v3", "--key", ""}, "--key is ''"},
          {{"create", out, "op=Merge,head_dim=8", "--targets", "x86-64-v3", "--key", "/nowhere"}, "can't be opened"},
          {{"merge", out, bad_specs}, "is no bundle"},
          {{"diff", bad_specs, bad_specs}, "is no bundle"},
          {{"sign", bad_specs}, "--key"}}) {
        std::vector<std::string> all = {"bundle"};
        all.insert(all.end(), arguments.begin(), arguments.end());
        CAPTURE(named);
        const ChildResult result = run_kvjit(all);
        CHECK(result.exit_code == 2);
        CHECK(result.out.empty());
        CHECK_MESSAGE(mentions(result.err, named), result.err);
    }
    CHECK(files_in(folder.path(), ".kvjb").empty());
    CHECK(files_in(folder.path()).size() == 1);
}

TEST_CASE("a spec that a target can't have is named and left out there") {
    const TemporaryFolder folder;
    const ChildResult made = run_kvjit(
        {"bundle", "create", folder.path("out.kvjb"), "op=Merge,head_dim=512", "--targets", "x86-64-v3,sm_80"});
    CHECK_MESSAGE(made.exit_code == 0, made.err);
    CHECK_MESSAGE(mentions(made.err, "left out: op=Merge,head_dim=512 for sm_80: head_dim is 512"), made.err);
    CHECK_MESSAGE(mentions(made.out, ", 1 program; "), made.out);
}

TEST_CASE("list shows what is there, for people and for programs") {
    const Bundles at;
    const ChildResult listed = run_kvjit({"bundle", "list", at.two});
    CHECK(listed.exit_code == 0);
    CHECK(mentions(listed.out, "x86-64-v3"));
    CHECK(mentions(listed.out, "merge/simd"));
    CHECK(mentions(listed.out, "kHeadDim=128"));
    CHECK(mentions(listed.out, "2 programs"));
    at.create(at.out, {"op=MultiHeadAttention,head_dim=64"});
    CHECK(mentions(run_kvjit({"bundle", "list", at.out}).out, " decode/simd "));
    at.create(at.out, {"op=Merge,head_dim=64"}, "x86-64-v3+gfni,x86-64-v3");
    const std::string columns = run_kvjit({"bundle", "list", at.out}).out;
    CHECK_MESSAGE(mentions(columns, "\nx86-64-v3                     merge/simd  "), columns);
    CHECK_MESSAGE(mentions(columns, "\nx86-64-v3 and 1 more feature  merge/simd  "), columns);
    const auto json = nlohmann::json::parse(run_kvjit({"bundle", "list", at.two, "--json"}).out);
    CHECK(json["format"] == 1);
    CHECK(json["bytes"] == std::filesystem::file_size(at.two));
    CHECK(json["signed_by"].is_null());
    REQUIRE(json["entries"].size() == 2);
    for (const auto& entry : json["entries"]) {
        CHECK(mentions(entry["identity"], "merge;variant=simd;"));
        CHECK(entry["target"] == "x86_64-unknown-linux-gnu:x86-64-v3");
        CHECK(mentions(entry["provenance"], "source="));
        CHECK(entry["image_bytes"] > 0);
    }
}

TEST_CASE("list names an entry that is damaged, and goes on with the others") {
    const Bundles at;
    std::string bytes = read_file(at.two);
    bytes[bytes.find("\x7f"
                     "ELF") +
          100] ^= 1;
    const std::string bad = at.folder.write("bad.kvjb", bytes);
    const ChildResult listed = run_kvjit({"bundle", "list", bad});
    CHECK(listed.exit_code == 1);
    CHECK(mentions(listed.out, "merge/simd"));
    CHECK_MESSAGE(mentions(listed.err, bad + " has a damaged entry "), listed.err);
    CHECK_MESSAGE(mentions(listed.err, "it is of merge for x86_64-unknown-linux-gnu:x86-64-v3"), listed.err);
    const ChildResult as_json = run_kvjit({"bundle", "list", bad, "--json"});
    CHECK(as_json.exit_code == 1);
    const auto json = nlohmann::json::parse(as_json.out);
    REQUIRE(json["entries"].size() == 2);
    const std::size_t damaged = json["entries"][0].contains("damage") ? 0 : 1;
    CHECK(mentions(json["entries"][damaged]["damage"], "has a damaged entry "));
    CHECK(mentions(json["entries"][1 - damaged]["identity"], "merge;variant=simd;"));
}

TEST_CASE("verify finds damage anywhere, and says so with status 1") {
    const Bundles at;
    CHECK(run_kvjit({"bundle", "verify", at.one, at.two}).exit_code == 0);
    const std::string good = read_file(at.one);
    for (const std::size_t place :
         {std::size_t{3}, std::size_t{100}, std::size_t{200}, good.size() / 2, good.size() - 1}) {
        CAPTURE(place);
        std::string bytes = good;
        bytes[place] ^= 1;
        const std::string bad = at.folder.write("bad.kvjb", bytes);
        const ChildResult result = run_kvjit({"bundle", "verify", at.two, bad});
        CHECK(result.exit_code == 1);
        CHECK(mentions(result.out, at.two + ": 2 whole programs, not signed"));
        CHECK_MESSAGE(mentions(result.err, bad + ' '), result.err);
        const auto json = nlohmann::json::parse(run_kvjit({"bundle", "verify", at.two, bad, "--json"}).out);
        CHECK(json[0]["good"] == true);
        CHECK(json[1]["good"] == false);
        CHECK(json[1]["problems"].size() == 1);
    }
}

TEST_CASE("verify goes on behind a file that can't be opened, and has it in its JSON, too") {
    const Bundles at;
    const std::string none = at.folder.path("none.kvjb");
    const ChildResult told = run_kvjit({"bundle", "verify", none, at.one});
    CHECK(told.exit_code == 2);
    CHECK_MESSAGE(mentions(told.err, none + " can't be opened: No such file"), told.err);
    CHECK(mentions(told.out, at.one + ": 1 whole program, not signed"));
    const ChildResult listed = run_kvjit({"bundle", "verify", "--json", none, at.one});
    CHECK(listed.exit_code == 2);
    const auto json = nlohmann::json::parse(listed.out);
    REQUIRE(json.size() == 2);
    CHECK(json[0]["file"] == none);
    CHECK(json[0]["good"] == false);
    CHECK(mentions(json[0]["problems"][0], "can't be opened: No such file"));
    CHECK(json[1]["good"] == true);
}

TEST_CASE("a signature is made, named, wanted, and lost with any change") {
    const Bundles at;
    const std::string key = at.folder.write("key.pem", kKey);
    const ChildResult is_signed = run_kvjit({"bundle", "sign", at.one, "--key", key});
    CHECK(is_signed.exit_code == 0);
    CHECK(mentions(is_signed.out, kPublicKey));
    CHECK(run_kvjit({"bundle", "verify", at.one, "--key", kPublicKey}).exit_code == 0);
    const ChildResult other = run_kvjit({"bundle", "verify", at.one, "--key", kOtherKey});
    CHECK(other.exit_code == 1);
    CHECK_MESSAGE(mentions(other.err, std::string("is signed by key ") + kPublicKey + ", not by " + kOtherKey),
                  other.err);
    CHECK(mentions(run_kvjit({"bundle", "verify", at.two, "--key", kPublicKey}).err, "is not signed, not by"));
    const ChildResult created =
        run_kvjit({"bundle", "create", at.out, "op=Merge,head_dim=64", "--targets", "x86-64-v3", "--key", key});
    CHECK(created.exit_code == 0);
    CHECK(read_file(at.out) == read_file(at.one));
}

TEST_CASE("merge takes each program once, in any order, and refuses what is not whole") {
    const Bundles at;
    const std::string three = at.folder.path("three.kvjb");
    at.create(three, {"op=Merge,head_dim=256"});
    CHECK(run_kvjit({"bundle", "merge", at.out, at.one, three, at.two}).exit_code == 0);
    const std::string merged = read_file(at.out);
    CHECK(run_kvjit({"bundle", "merge", at.out, at.two, at.one, three}).exit_code == 0);
    CHECK(read_file(at.out) == merged);
    at.create(at.out, {"op=Merge,head_dim=128", "op=Merge,head_dim=256", "op=Merge,head_dim=64"});
    CHECK(read_file(at.out) == merged);
}

TEST_CASE("what is signed or written anew keeps its mode, and stays behind the link that leads to it") {
    const Bundles at;
    const std::string key = at.folder.write("key.pem", kKey), link = at.folder.path("link.kvjb");
    namespace fs = std::filesystem;
    const fs::perms mode = fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read;
    fs::permissions(at.one, mode);
    fs::create_symlink("one.kvjb", link);
    CHECK(run_kvjit({"bundle", "sign", link, "--key", key}).exit_code == 0);
    CHECK(fs::is_symlink(link));
    CHECK(fs::status(at.one).permissions() == mode);
    CHECK(run_kvjit({"bundle", "verify", at.one, "--key", kPublicKey}).exit_code == 0);
    CHECK(run_kvjit({"bundle", "merge", link, at.two}).exit_code == 0);
    CHECK(fs::is_symlink(link));
    CHECK(fs::status(at.one).permissions() == mode);
    CHECK(read_file(at.one) == read_file(at.two));
    const std::string small = at.folder.path("small.kvjb");
    at.create(small, {"op=Merge,head_dim=64"});
    CHECK(run_kvjit({"bundle", "merge", link, small}).exit_code == 0);
    CHECK(read_file(at.one) == read_file(small));  // of what was longer nothing is left
    const std::string lost = at.folder.path("lost.kvjb");
    fs::create_symlink("nowhere.kvjb", lost);
    const ChildResult refused = run_kvjit({"bundle", "merge", lost, small});
    CHECK(refused.exit_code == 2);
    CHECK(mentions(refused.err, "lost.kvjb can't be written: it is a link that leads to no file"));
    CHECK(fs::is_symlink(lost));
}

TEST_CASE("verify tells which programs of specs and targets a bundle lacks") {
    const Bundles at;
    const std::string specs = at.folder.write("specs.txt", "op=Merge,head_dim={64,128}\n");
    const auto verify = [&](const std::string& bundle, const std::string& targets) {
        return run_kvjit({"bundle", "verify", bundle, "--specs", specs, "--targets", targets});
    };
    const ChildResult whole = verify(at.two, "x86-64-v3");
    CHECK(whole.exit_code == 0);
    CHECK(mentions(whole.out, "2 whole programs, all 2 that are needed, not signed"));
    const ChildResult spec = verify(at.one, "x86-64-v3");
    CHECK(spec.exit_code == 1);
    CHECK(mentions(spec.err, "one.kvjb lacks merge of op=Merge for x86-64-v3\n"));
    const ChildResult target = verify(at.two, "x86-64-v3,x86-64-v2");
    CHECK(target.exit_code == 1);
    CHECK(mentions(target.err,
                   "lacks merge of op=Merge,head_dim=64 for x86-64-v2; it has it for "
                   "x86_64-unknown-linux-gnu:x86-64-v3\n"));
    CHECK(run_kvjit({"bundle", "verify", at.two, "--specs", specs}).exit_code == 2);
    CHECK(run_kvjit({"bundle", "verify", at.two, "--targets", "x86-64-v3"}).exit_code == 2);
}

TEST_CASE("each spec and target counts once, and the word that has a bad spec is named") {
    const TemporaryFolder folder;
    const std::string out = folder.path("out.kvjb"), merge = "op=Merge,head_dim=64";
    const ChildResult made =
        run_kvjit({"bundle", "create", out, merge, merge + ",t1=f16", "--targets", "x86-64-v3,x86-64-v3"});
    CHECK(mentions(made.out, ": 1 spec, 1 target, 1 program; "));
    const ChildResult bad = run_kvjit({"bundle", "create", out, merge, "op=Merge,head_dim=7", "--targets", "host"});
    CHECK(mentions(bad.err, "SPEC 2: KVJIT_BAD_SPEC: line 1: head_dim"));
}

TEST_CASE("the cache of bundle create keeps to KVJIT_CACHE_MAX_BYTES") {
    const TemporaryFolder folder;
    for (const auto& [most, hits] : {std::pair{"1000", "0 from the cache"}, {"1000000", "1 from the cache"}}) {
        const std::string cache = folder.path(most);
        const Variable limit("KVJIT_CACHE_MAX_BYTES", most);
        ChildResult made;
        for (int i = 0; i < 2; ++i) {
            made = run_kvjit({"bundle", "create", folder.path("out.kvjb"), "op=Merge,head_dim=64", "--targets",
                              "x86-64-v3", "--cache-dir", cache});
        }
        CHECK_MESSAGE(mentions(made.out, hits), made.out);
    }
}

TEST_CASE("calls are recorded, replayed and measured with nothing but a bundle's kernels") {
    const TemporaryFolder folder;
    const std::string bundle = folder.path("kernels.kvjb"), call = folder.path("call.safetensors");
    const std::string spec = "op=KeyValueCache,head_dim=16,layout=T2HD";
    REQUIRE(run_kvjit({"bundle", "create", bundle, spec, "--targets", "host"}).exit_code == 0);
    const Variable no_compiling("KVJIT_JIT", "off");
    for (std::vector<std::string> command : {std::vector<std::string>{"record", spec, "--batch", "2x3:5", "-o", call},
                                             {"replay", call},
                                             {"bench", spec, "--batch", "2x3:5", "--seconds", "0", "--layers", "1"}}) {
        CAPTURE(command.front());
        for (const char* argument : {"--cache-dir", ""}) command.emplace_back(argument);
        const ChildResult without = run_kvjit(command);
        CHECK(without.exit_code == 2);
        CHECK(mentions(without.err, "KVJIT_NOT_FOUND"));
        for (const std::string& argument : {std::string("--bundle"), bundle}) command.push_back(argument);
        const ChildResult with = run_kvjit(command);
        CHECK_MESSAGE(with.exit_code == 0, with.err);
    }
    const ChildResult none_there = run_kvjit({"replay", call, "--bundle", call});
    CHECK(none_there.exit_code == 2);
    CHECK(mentions(none_there.err, "call.safetensors is no bundle"));
}

TEST_CASE("merge refuses two makers' code of one program, and names both bundles") {
    const Bundles at;
    const std::string other = at.folder.path("other.kvjb"), templates = at.folder.path("templates");
    std::filesystem::copy(KVJIT_TEMPLATES, templates, std::filesystem::copy_options::recursive);
    std::ofstream(templates + "/cpu/merge.cc", std::ios::app) << "// another text\n";
    REQUIRE(setenv("KVJIT_TEMPLATE_DIR", templates.c_str(), 1) == 0);
    at.create(other, {"op=Merge,head_dim=64"});
    unsetenv("KVJIT_TEMPLATE_DIR");
    const ChildResult refused = run_kvjit({"bundle", "merge", at.out, at.one, other});
    CHECK(refused.exit_code == 2);
    CHECK_MESSAGE(mentions(refused.err, at.one + " and " + other + " have the same program"), refused.err);
    CHECK(!std::filesystem::exists(at.out));
}

TEST_CASE("merge takes sources from where they are, in any order") {
    const Bundles at;
    const std::string bare = at.folder.path("bare.kvjb");
    REQUIRE(run_kvjit({"bundle", "create", bare, "op=Merge,head_dim=64", "--targets", "x86-64-v3", "--no-sources"})
                .exit_code == 0);
    CHECK(run_kvjit({"bundle", "merge", at.out, bare, at.one}).exit_code == 0);
    CHECK(read_file(at.out) == read_file(at.one));
    CHECK(run_kvjit({"bundle", "merge", at.out, at.one, bare}).exit_code == 0);
    CHECK(read_file(at.out) == read_file(at.one));
}

TEST_CASE("a pipe is written to, and stays one") {
    const Bundles at;
    const std::string pipe = at.folder.path("pipe");
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    std::string read;
    std::thread reader([&] { read = read_file(pipe); });
    CHECK(run_kvjit({"bundle", "merge", pipe, at.one}).exit_code == 0);
    reader.join();
    CHECK(std::filesystem::is_fifo(pipe));
    CHECK(read == read_file(at.one));
}

TEST_CASE("what a killed process left beside a bundle doesn't keep it from being written") {
    const Bundles at;
    // The shell's number becomes the command's.
    const std::string command = "sh -c 'touch \"$1.tmp-$$\"; exec \"$0\" bundle merge \"$1\" \"$2\"' '" KVJIT_TOOL
                                "' '" +
                                at.out + "' '" + at.one + "'";
    CHECK(std::system(command.c_str()) == 0);
    CHECK(read_file(at.out) == read_file(at.one));
}

TEST_CASE("what can't be written or signed is refused before anything is compiled") {
    const Bundles at;
    for (const std::vector<std::string>& last :
         {std::vector<std::string>{at.out, "--key", "/nowhere.pem"}, {"/nowhere/out.kvjb"}, {at.folder.path(".")}}) {
        CAPTURE(last.front());
        std::vector<std::string> arguments = {"bundle", "create", "op=Merge,head_dim=32", "--targets", "x86-64-v3"};
        arguments.insert(arguments.begin() + 2, last.begin(), last.end());
        REQUIRE(setenv("KVJIT_COMPILER", "/nowhere", 1) == 0);  // it would be what fails first
        const ChildResult refused = run_kvjit(arguments);
        unsetenv("KVJIT_COMPILER");
        CHECK(refused.exit_code == 2);
        CHECK_MESSAGE(mentions(refused.err, last.back() == "/nowhere.pem" ? "/nowhere.pem" : "can't be written"),
                      refused.err);
    }
}

TEST_CASE("a spec in several words is not taken for several specs") {
    const Bundles at;
    const ChildResult refused =
        run_kvjit({"bundle", "create", at.out, "op=Merge", "head_dim=64", "--targets", "x86-64-v3"});
    CHECK(refused.exit_code == 2);
    CHECK_MESSAGE(mentions(refused.err, "SPEC \"head_dim=64\" is one of several"), refused.err);
    CHECK(!std::filesystem::exists(at.out));
}

TEST_CASE("diff tells what only one has, and what differs") {
    const Bundles at;
    CHECK(run_kvjit({"bundle", "diff", at.one, at.one}).exit_code == 0);
    const ChildResult more = run_kvjit({"bundle", "diff", at.one, at.two});
    CHECK(more.exit_code == 1);
    CHECK_MESSAGE(more.out.starts_with("+ merge;variant=simd;"), more.out);
    CHECK(run_kvjit({"bundle", "diff", at.two, at.one}).out.starts_with("- merge;variant=simd;"));
    const std::string bare = at.folder.path("bare.kvjb");
    REQUIRE(run_kvjit({"bundle", "create", bare, "op=Merge,head_dim=64", "--targets", "x86-64-v3", "--no-sources"})
                .exit_code == 0);
    const ChildResult differs = run_kvjit({"bundle", "diff", at.one, bare});
    CHECK(differs.exit_code == 1);
    CHECK_MESSAGE(mentions(differs.out, " (source)\n"), differs.out);
}

TEST_CASE("extract writes what there is, under names of its own") {
    const Bundles at;
    const std::string to = at.folder.path("a/b");
    CHECK(run_kvjit({"bundle", "extract", at.two, "--to", to, "--match", "kHeadDim=128"}).exit_code == 0);
    const auto objects = files_in(to, ".x86-64-v3.o"), sources = files_in(to, ".x86-64-v3.cc");
    REQUIRE(objects.size() == 1);
    REQUIRE(sources.size() == 1);
    CHECK(read_file(objects[0])
              .starts_with("\x7f"
                           "ELF"));
    CHECK(mentions(read_file(sources[0]), "kvjit_merge"));
    const ChildResult none = run_kvjit({"bundle", "extract", at.two, "--to", to, "--match", "kHeadDim=129"});
    CHECK(none.exit_code == 2);
    CHECK(mentions(none.err, "no identity in " + at.two + " has 'kHeadDim=129' in it"));
}

}  // namespace
}  // namespace kvjit::test
