// What the command says about its arguments, its files and its output.
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string>

#include "child.h"
#include "inspect/programs.h"
#include "kvjit/kvjit.hpp"
#include "recorded_file.h"
#include "support/read_file.h"
#include "support/temporary_folder.h"

namespace kvjit::test {
namespace {

TEST_CASE("--version and --help succeed and say what they should") {
    CHECK(run_kvjit({"--version"}).out.starts_with("kvjit 0."));
    for (const auto& arguments : {std::vector<std::string>{"--help"},
                                  {"help"},
                                  {"help", "replay"},
                                  {"replay", "--help"},
                                  {"inspect", "--help"},
                                  {"targets", "--help"},
                                  {"spec", "--help"},
                                  {"help", "spec"},
                                  {"spec", "list", "--help"}}) {
        const ChildResult result = run_kvjit(arguments);
        CHECK(result.exit_code == 0);
        CHECK(mentions(result.out, "Examples:"));
    }
    const std::string help = run_kvjit({"inspect", "--help"}).out;
    for (const char* field : {"op", "head_dim", "quant_group", "cache_mode", "layout", "attn_mask"}) {
        CHECK(mentions(help, field));
    }
}

TEST_CASE("targets are listed with what they are, or by their names alone") {
    const ChildResult all = run_kvjit({"targets"});
    CHECK(all.exit_code == 0);
    CHECK(mentions(all.out, "\nx86-64-v3 "));
    CHECK(mentions(all.out, "\nsm_90a "));
    const ChildResult names = run_kvjit({"targets", "--names"});
    CHECK(names.exit_code == 0);
    CHECK(mentions(names.out, "\nx86-64-v4-amx\n"));
    CHECK(mentions(names.out, "\nsm_100f\n"));
    CHECK(!mentions(names.out, " "));
    CHECK(run_kvjit({"targets", "x86-64-v3"}).exit_code == 2);
}

TEST_CASE("layouts that have a name are listed in columns, or by their names alone") {
    const ChildResult all = run_kvjit({"spec", "list", "layouts"});
    CHECK(all.exit_code == 0);
    const std::size_t axes = all.out.find("axes"), whose = all.out.find("whose");
    std::istringstream lines(all.out);
    int count = -1;  // without the columns' names
    for (std::string line; std::getline(lines, line); ++count) {
        CAPTURE(line);
        CHECK((line[axes - 1] == ' ' && line[axes] != ' ' && line[whose - 1] == ' ' && line[whose] != ' '));
        CHECK(line.size() <= 160);
    }
    CHECK(count > 30);
    const ChildResult names = run_kvjit({"spec", "list", "layouts", "--names"});
    CHECK(names.exit_code == 0);
    CHECK(std::ranges::count(names.out, '\n') == count);
    CHECK(mentions(names.out, "\nvllm:LBNHC\n"));
    CHECK(!mentions(names.out, " "));
    std::istringstream each(names.out);
    for (std::string name; std::getline(each, name);) {
        CAPTURE(name);
        CHECK(mentions(all.out, "\n" + name + " "));
    }
    CHECK(mentions(run_kvjit({"inspect", "layout=ksana", "--images"}).out, "store"));
    for (const auto& arguments : {std::vector<std::string>{"spec"},
                                  {"spec", "list"},
                                  {"spec", "list", "colours"},
                                  {"spec", "show"},
                                  {"spec", "list", "layouts", "more"}}) {
        const ChildResult refused = run_kvjit(arguments);
        CHECK(refused.exit_code == 2);
        CHECK(refused.out.empty());
        CHECK(!refused.err.empty());
    }
}

TEST_CASE("a bundle's lists of specs: what is left out is named, what is a mistake is refused") {
    const TemporaryFolder folder;
    const std::string bundle = folder.path("kernels.kvjb");
    const std::string specs = folder.write(
        "specs.txt", "op=KeyValueCache layout={L2HTD,N2LTHD} cache_mode={offset,block_table} head_dim=8\n");
    const auto create = [&](const std::vector<std::string>& more) {
        std::vector<std::string> arguments = {"bundle", "create", bundle, "--targets", "x86-64"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return run_kvjit(arguments);
    };
    const ChildResult made = create({"--specs", specs});
    CHECK(made.exit_code == 0);
    CHECK_MESSAGE(mentions(made.out, "2 specs"), made.out);
    CHECK_MESSAGE(
        mentions(made.err,
                 "left out: " + specs +
                     ": line 1: op=KeyValueCache,layout=L2HTD,cache_mode=block_table,head_dim=8: layout is L2HTD; axis "
                     "N stands in the layout of a block_table or sequence_table"),
        made.err);
    const ChildResult refused = create({"op=Merge,head_dim={8,100}"});
    CHECK(refused.exit_code == 2);
    CHECK_MESSAGE(mentions(refused.err, "line 1: no spec has head_dim=100"), refused.err);
    const ChildResult too_many = create({"op=Merge,head_dim={8,16,24}", "--max-combinations", "2"});
    CHECK(too_many.exit_code == 2);
    CHECK_MESSAGE(mentions(too_many.err, "max_combinations is 2"), too_many.err);
}

TEST_CASE("--why tells which algorithm serves each program, and why those before it don't") {
    const ChildResult all = run_kvjit({"inspect", "head_dim=64", "group=1", "--target", "sm_90a", "--why"});
    CHECK(all.exit_code == 0);
    CHECK(mentions(all.out, "decode:\nmma (cuda/attend_decode_mma.cu) declines: group is 1;"));
    CHECK(mentions(all.out, "prefill:\nmma (cuda/attend_prefill_mma.cu) serves\n"));
    CHECK(run_kvjit({"inspect", "head_dim=64", "--target", "x86-64", "--why", "--program", "store"}).out ==
          "store:\nsimd (cpu/store.cc) serves\ncut (cpu/store_cut.cc) is not asked\n");
}

TEST_CASE("--why explains every program also where there is no kernel, and ends with that") {
    const ChildResult all = run_kvjit({"inspect", "head_dim=512", "op=KeyValueCache", "--target", "sm_90a", "--why"});
    CHECK(all.exit_code == 2);
    const std::string declines = "declines: head_dim is 512; CUDA kernels take at most 256\n";
    CHECK(all.out == "check:\nwarps (cuda/check.cu) " + declines + "store:\nwarps (cuda/store.cu) " + declines +
                         "cut (cuda/store_cut.cu) " + declines + "load:\nwarps (cuda/load.cu) " + declines +
                         "cut (cuda/load_cut.cu) " + declines);
    CHECK(all.err ==
          "kvjit: no kernel of this spec exists on sm_90a: KVJIT_BAD_SPEC: head_dim is 512; CUDA kernels take at most "
          "256\n");
    const ChildResult lacking =
        run_kvjit({"inspect", "head_dim=512", "--target", "sm_90a", "--why", "--program", "load"});
    CHECK(lacking.exit_code == 2);
    CHECK(lacking.out.empty());
    CHECK(lacking.err == "kvjit: --program is load; on sm_90a this op has check, decode, prefill, store\n");
}

const std::string kStore = "store;variant=simd;revision=1;kHeadDim=64;abi=1;x86_64-unknown-linux-gnu:x86-64-v3";

/// A file of identities, which lives as long as this object.
class IdentityFile {
public:
    explicit IdentityFile(const std::string& text) {
        const int file = mkstemp(path_.data());
        CHECK(write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
        close(file);
    }
    ~IdentityFile() { unlink(path_.c_str()); }
    IdentityFile(const IdentityFile&) = delete;
    IdentityFile& operator=(const IdentityFile&) = delete;

    const std::string& path() const { return path_; }

private:
    std::string path_ = "/tmp/kvjit-identity-XXXXXX";
};

TEST_CASE("--diff tells what differs between two texts, or files of what inspect printed") {
    const ChildResult texts = run_kvjit({"inspect", "--diff", kStore, "load" + kStore.substr(5)});
    CHECK(texts.exit_code == 0);
    CHECK(texts.out == "store:\n  program: store -> load\n");
    const auto printed = [](const std::string& head_dim) {
        return run_kvjit({"inspect", "head_dim=" + head_dim, "--target", "x86-64-v3", "--emit", "identity"}).out;
    };
    const IdentityFile narrow(printed("64")), wide(printed("128"));
    const ChildResult equal = run_kvjit({"inspect", "--diff", narrow.path(), narrow.path()});
    CHECK(equal.exit_code == 0);
    CHECK(equal.out == "store: nothing\nattend_decode: nothing\nattend_prefill: nothing\nmerge: nothing\n");
    const ChildResult input = run_kvjit({"inspect", "--diff", "-", narrow.path()}, Output::kCaptured, narrow.path());
    CHECK(input.out == equal.out);
    const ChildResult files = run_kvjit({"inspect", "--diff", narrow.path(), wide.path()});
    CHECK(files.exit_code == 0);
    for (const char* part :
         {"store:\n  constant kHeadDim: 64 -> 128\n", "merge:\n  constant kHeadDim: 64 -> 128\n", "\n  source: "}) {
        CHECK_MESSAGE(mentions(files.out, part), files.out);
    }
    CHECK(!mentions(files.out, "flags"));
}

TEST_CASE("--diff refuses what is no identity, with the reason") {
    const IdentityFile empty(""), nul(kStore + std::string(1, '\0')), good(kStore);
    struct Case {
        std::vector<std::string> texts;
        std::string reason;
    };
    const Case cases[] = {
        {{kStore, "store;x"}, "after, line 1: \"store;x\" is no identity"},
        {{"store;\x1b[2J", kStore}, "before, line 1: \"store;\\x1b[2J\" is no identity"},
        {{empty.path(), good.path()}, "before: there is no identity"},
        {{good.path(), nul.path()}, "a NUL byte is in no identity"},
        {{"/nonexistent", kStore}, "/nonexistent can't be opened: No such file"},
        {{kStore, "/tmp"}, "/tmp can't be read: Is a directory"},
        {{"-", "-"}, "there is one standard input"},
        {{"-", kStore}, "before: there is no identity"},
        {{kStore}, "--diff"},
        {{kStore, kStore, kStore}, "--diff"},
        {{kStore, kStore, "--why"}, "--diff"},
        {{kStore, kStore, "--target", "sm_90a"}, "--diff"},
    };
    for (const Case& test : cases) {
        std::vector<std::string> arguments = {"inspect", "--diff"};
        arguments.insert(arguments.end(), test.texts.begin(), test.texts.end());
        const ChildResult result = run_kvjit(arguments);
        CHECK(result.exit_code == 2);
        CHECK(result.out.empty());
        CHECK_MESSAGE(mentions(result.err, test.reason), result.err);
    }
    CHECK(mentions(run_kvjit({"inspect"}).err, "SPEC or --diff is missing"));
}

TEST_CASE("bad arguments are refused with status 2") {
    for (const auto& arguments : {std::vector<std::string>{},
                                  {"frobnicate"},
                                  {"replay"},
                                  {"inspect"},
                                  {"replay", "--threads", "-1", "x"},
                                  {"replay", "--op", "Softmax", "x"},
                                  {"replay", "--target", "pdp-11", "x"},
                                  {"inspect", "head_dim=12"},
                                  {"inspect", "colour=red"},
                                  {"inspect", "head_dim=64", "--emit", "wasm"},
                                  {"inspect", "head_dim=64", "--emit", "2"},
                                  {"inspect", "head_dim=64", "--emit", "asm", "--why"},
                                  {"inspect", "head_dim=64", "--emit", "asm", "--images"},
                                  {"inspect", "head_dim=64", "--images", "--why"},
                                  {"inspect", "--images", "--diff", "x", "y"},
                                  {"inspect", "head_dim=64", "--emit", "object"},
                                  {"inspect", "head_dim=64", "--bundle", "/nowhere.kvjb"},
                                  {"inspect", "op=Merge", "--output", "/nowhere/merge.txt"},
                                  {"inspect", "op=Merge", "--program", "store"},
                                  {"inspect", "head_dim=64", "--program", "fly"},
                                  {"inspect", "head_dim=64", "--target", "pdp-11"}}) {
        CAPTURE(arguments.empty() ? "" : arguments.back());
        const ChildResult result = run_kvjit(arguments);
        CHECK(result.exit_code == 2);
        CHECK(!result.err.empty());
        CHECK(result.out.empty());
    }
}

TEST_CASE("a command that there is not is named, and so are those that there are") {
    for (const auto& [arguments, named] :
         {std::pair<std::vector<std::string>, std::string>{{"foo"}, "'foo' is no command"},
          {{"foo", "--help"}, "'foo' is no command"},
          {{"--frob", "replay", "x"}, "'--frob' is no command"},
          {{""}, "'' is no command"},
          {{"help", "foo"}, "'foo' is no command"},
          {{}, "a command of kvjit is missing"}}) {
        CAPTURE(named);
        const ChildResult result = run_kvjit(arguments);
        CHECK(result.exit_code == 2);
        CHECK(result.out.empty());
        CHECK_MESSAGE(mentions(result.err, named), result.err);
        CHECK_MESSAGE(mentions(result.err, "replay, inspect, bench, "), result.err);
    }
    const ChildResult result = run_kvjit({"help", "replay", "foo"});
    CHECK(result.exit_code == 2);
    CHECK_MESSAGE(mentions(result.err, "'foo' is one word too many after help replay"), result.err);
}

bool has_control_characters(const std::string& text) {
    return std::ranges::any_of(text, [](unsigned char c) { return (c < 0x20 && c != '\n') || c == 0x7f; });
}

TEST_CASE("nothing that the user wrote drives the terminal") {
    const std::string evil = "\x1b[2J\x07";
    const std::string escaped = "\\x1b[2J\\x07";
    for (const auto& arguments : {std::vector<std::string>{evil},
                                  {"help", evil},
                                  {"inspect", "head_dim=" + evil},
                                  {"inspect", "head_dim=64", "--target", evil},
                                  {"inspect", "head_dim=64", "--emit", evil},
                                  {"inspect", "head_dim=64", "--program", evil},
                                  {"inspect", "head_dim=64", "--" + evil},
                                  {"replay", "--threads", evil, "x"},
                                  {"replay", "/tmp/" + evil}}) {
        CAPTURE(arguments.front());
        const ChildResult result = run_kvjit(arguments);
        CHECK(result.exit_code == 2);
        CHECK(!has_control_characters(result.out + result.err));
        CHECK_MESSAGE(mentions(result.err, escaped), result.err);
    }
}

TEST_CASE("a line break in a name does not begin a line") {
    for (const auto& arguments :
         {std::vector<std::string>{"a\nb"}, {"replay", "a\nb"}, {"inspect", "head_dim=64", "--target", "a\nb"}}) {
        const ChildResult result = run_kvjit(arguments);
        CHECK_MESSAGE(mentions(result.err, "a\\x0ab"), result.err);
    }
}

TEST_CASE("a bad spec names the field and what it takes") {
    const ChildResult result = run_kvjit({"inspect", "head_dim=12"});
    CHECK(mentions(result.err, "head_dim"));
    CHECK(mentions(result.err, "multiple of 8"));
}

/// As the library refuses a bit of no program.
std::int64_t bits_of_programs() {
    const auto engine = Engine::create();
    REQUIRE(engine);
    const auto kernel = engine->kernel(KernelSpec());
    REQUIRE(kernel);
    return kernel->prepare(std::uint32_t{1} << 31).error().limit();
}

TEST_CASE("the command has a name for each program") {
    std::uint32_t named = 0;
    for (const auto& [name, programs] : tool::program_names()) named |= name == "all" ? 0 : programs;
    CHECK(named == bits_of_programs());
    CHECK(tool::program_names().at("all") == KVJIT_ALL_PROGRAMS);
}

TEST_CASE("a program is asked for by its name, or by what identities call it") {
    const auto why = [](const char* program) {
        return run_kvjit({"inspect", "head_dim=64", "--target", "x86-64", "--why", "--program", program}).out;
    };
    CHECK(why("decode").starts_with("decode:\n"));
    CHECK(why("attend_decode") == why("decode"));
    CHECK(why("attend_prefill") == why("prefill"));
    CHECK(run_kvjit({"inspect", "head_dim=64", "--program", "attend_"}).exit_code == 2);
}

TEST_CASE("a program that the op lacks is named, and so are those that it has") {
    const ChildResult result = run_kvjit({"inspect", "head_dim=128", "--program", "load"});
    CHECK(result.exit_code == 2);
    CHECK(mentions(result.err, "--program is load;"));
    CHECK(mentions(result.err, "on host this op has decode, merge, prefill, store\n"));
    const ChildResult gpu = run_kvjit({"inspect", "op=KeyValueCache", "--program", "merge", "--target", "sm_90a"});
    CHECK(mentions(gpu.err, "--program is merge;"));
    CHECK(mentions(gpu.err, "on sm_90a this op has check, load, store\n"));
}

TEST_CASE("inspect shows every stage, for any target") {
    for (const std::string stage : {"identity", "source", "ir", "asm"}) {
        const ChildResult result = run_kvjit({"inspect", "op=KeyValueCache", "head_dim=64", "--emit", stage,
                                              "--program", "store", "--target", "x86-64-v3"});
        CAPTURE(stage);
        CAPTURE(result.err);
        CHECK(result.exit_code == 0);
        CHECK(mentions(result.out, "kvjit_store") != (stage == "identity"));
        CHECK(!result.out.empty());
    }
}

/// A folder with kernels.kvjb, which has Merge of head_dim 64 for x86-64, and no compiler while it is there.
struct WithoutCompiler {
    WithoutCompiler() {
        const ChildResult made =
            run_kvjit({"bundle", "create", bundle, "--targets", "x86-64", "-q", "op=Merge,head_dim=64"});
        REQUIRE_MESSAGE(made.exit_code == 0, made.err);
        setenv("KVJIT_COMPILER", "/nowhere/libkvjit_compiler.so", 1);
        setenv("KVJIT_CACHE_DIR", folder.path("cache").c_str(), 1);
    }
    ~WithoutCompiler() {
        unsetenv("KVJIT_COMPILER");
        unsetenv("KVJIT_CACHE_DIR");
    }
    /// Of a spec, with the bundle.
    ChildResult inspect(std::vector<std::string> arguments, Output output = Output::kCaptured) const {
        arguments.insert(arguments.begin(), "inspect");
        arguments.insert(arguments.end(), {"--bundle", bundle});
        return run_kvjit(arguments, output);
    }

    TemporaryFolder folder;
    std::string bundle = folder.path("kernels.kvjb");
};

TEST_CASE("--images tells which bundle has what is run, and what nobody has") {
    const WithoutCompiler here;
    const ChildResult has = here.inspect({"op=Merge,head_dim=64", "--images"});
    CAPTURE(has.out);
    CHECK(has.exit_code == 0);
    CHECK(has.err.empty());
    CHECK(std::ranges::count(has.out, '\n') == 2);
    CHECK(has.out.starts_with("program  origin  bytes "));
    CHECK(mentions(has.out, "\nmerge    bundle  "));
    CHECK(mentions(has.out, " x86_64-unknown-linux-gnu:x86-64  " + here.bundle + "\n"));
    CHECK(mentions(has.out, "  simd revision "));
    const ChildResult lacks = here.inspect({"op=Merge,head_dim=128", "--images", "--target", "x86-64"});
    CHECK(lacks.exit_code == 0);
    CHECK(mentions(lacks.out, "\nmerge    none    -      simd revision "));
    CHECK(lacks.out.ends_with(" x86_64-unknown-linux-gnu:x86-64\n"));
}

TEST_CASE("--images lists the other programs beside one whose entry is damaged") {
    const TemporaryFolder folder;
    const std::string bundle = folder.path("kernels.kvjb"), spec = "op=KeyValueCache,head_dim=64";
    REQUIRE(run_kvjit({"bundle", "create", bundle, "--targets", "x86-64", spec}).exit_code == 0);
    const auto json = nlohmann::json::parse(run_kvjit({"bundle", "list", bundle, "--json"}).out);
    std::string bytes = read_file(bundle);
    for (const auto& entry : json["entries"]) {
        const std::string identity = entry["identity"];
        if (identity.starts_with("store;")) bytes[entry["offset"].get<std::size_t>() + identity.size() + 3] ^= 1;
    }
    const std::string bad = folder.write("bad.kvjb", bytes);
    setenv("KVJIT_JIT", "off", 1);
    setenv("KVJIT_CACHE_DIR", folder.path("cache").c_str(), 1);
    const ChildResult listed = run_kvjit({"inspect", spec, "--target", "x86-64", "--bundle", bad, "--images"});
    unsetenv("KVJIT_JIT");
    unsetenv("KVJIT_CACHE_DIR");
    CHECK(listed.exit_code == 2);
    CHECK_MESSAGE(mentions(listed.out, "\nload     bundle  "), listed.out);
    CHECK(!mentions(listed.out, "\nstore"));
    CHECK_MESSAGE(mentions(listed.err, "store: KVJIT_BAD_FILE: "), listed.err);
    CHECK_MESSAGE(mentions(listed.err, "it is of store for x86_64-unknown-linux-gnu:x86-64"), listed.err);
}

TEST_CASE("a bundle's object, source and identity are shown without a compiler; assembly needs one") {
    const WithoutCompiler here;
    const std::string file = here.folder.path("merge.o");
    const ChildResult written = here.inspect({"op=Merge,head_dim=64", "--emit", "object", "-o", file});
    CHECK_MESSAGE(written.exit_code == 0, written.err);
    CHECK(written.out.empty());
    const std::string object = read_file(file);
    CHECK(
        object.starts_with("\x7f"
                           "ELF"));
    CHECK(mentions(read_file(here.bundle), object));
    CHECK(here.inspect({"op=Merge,head_dim=64", "--emit", "object"}).out == object);
    CHECK(mentions(here.inspect({"op=Merge,head_dim=64", "--emit", "source"}).out, "kvjit_merge"));
    const std::string stored = here.inspect({"op=Merge,head_dim=64", "--emit", "identity"}).out;
    CHECK(stored.starts_with("identity: merge;"));
    CHECK(mentions(stored, "\nprovenance: source="));
    const ChildResult alone = here.inspect({"op=Merge,head_dim=128", "--emit", "identity"});
    CHECK_MESSAGE(alone.exit_code == 0, alone.err);
    CHECK(alone.out.starts_with("identity: merge;"));
    CHECK(std::ranges::count(alone.out, '\n') == 1);
    const ChildResult assembly = here.inspect({"op=Merge,head_dim=64", "--emit", "asm"});
    CHECK(assembly.exit_code == 2);
    CHECK(mentions(assembly.err, "KVJIT_COMPILER_MISSING"));
}

TEST_CASE("an object is written to no terminal, and one at a time" * doctest::skip(!has_terminals())) {
    const WithoutCompiler here;
    const ChildResult terminal = here.inspect({"op=Merge,head_dim=64", "--emit", "object"}, Output::kTerminal);
    CHECK(terminal.exit_code == 2);
    CHECK(terminal.err == "kvjit: an object is no text for a terminal: -o FILE, or > FILE\n");
    const std::string file = here.folder.path("merge.o");
    CHECK(here.inspect({"op=Merge,head_dim=64", "--emit", "object", "-o", file}, Output::kTerminal).exit_code == 0);
    CHECK(here.inspect({"op=Merge,head_dim=64", "--images"}, Output::kTerminal).exit_code == 0);
    const ChildResult several = here.inspect({"head_dim=64", "--emit", "object", "-o", here.folder.path("all.o")});
    CHECK(several.exit_code == 2);
    CHECK(mentions(several.err,
                   "--program is all; on host this op has decode, merge, prefill, store: name one, or -o FOLDER/\n"));
    CHECK(!std::filesystem::exists(here.folder.path("all.o")));
}

TEST_CASE("output that can't be written is an error, not a silent loss") {
    for (const Output output : {Output::kClosed, Output::kFull}) {
        for (const auto& arguments :
             {std::vector<std::string>{"--help"}, {"inspect", "op=KeyValueCache", "head_dim=64", "--emit", "source"}}) {
            const ChildResult result = run_kvjit(arguments, output);
            CHECK(result.signal == 0);
            CHECK(result.exit_code == 2);
            CHECK(mentions(result.err, "standard output"));
        }
    }
}

TEST_CASE("a reader who has seen enough ends the command as SIGPIPE does, without a word") {
    const auto inherited = std::signal(SIGPIPE, SIG_DFL);
    for (const auto& disposition : {SIG_DFL, SIG_IGN}) {
        std::signal(SIGPIPE, disposition);
        for (const auto& arguments : {std::vector<std::string>{"--help"},
                                      {"inspect", "--help"},
                                      {"inspect", "op=KeyValueCache", "head_dim=64", "--emit", "source"},
                                      {"replay", golden_file("000_")}}) {
            CAPTURE(arguments.front());
            const ChildResult result = run_kvjit(arguments, Output::kBrokenPipe);
            CHECK(result.signal == SIGPIPE);
            CHECK_MESSAGE(result.err.empty(), result.err);
        }
    }
    std::signal(SIGPIPE, inherited);
}

TEST_CASE("variables that do nothing are said once, and the command works") {
    setenv("KVJIT_PERF", "2", 1);
    setenv("KVJIT_PREF", "1", 1);
    const ChildResult result = run_kvjit({"inspect", "head_dim=64", "--program", "store"});
    unsetenv("KVJIT_PERF");
    unsetenv("KVJIT_PREF");
    CHECK(result.exit_code == 0);
    CHECK(result.err ==
          "kvjit: warning: KVJIT_PERF is \"2\"; it takes 0, 1 or jitdump: it counts as 0\n"
          "kvjit: warning: KVJIT_PREF in the environment does nothing: kvjit has no such variable; the nearest is "
          "KVJIT_PERF\n");
}

TEST_CASE("a masked machine is a lesser one") {
    const std::vector<std::string> identity = {"inspect", "head_dim=64", "--program", "store", "--emit", "identity"};
    setenv("KVJIT_CPU_MASK", "ssse3", 1);
    const ChildResult result = run_kvjit(identity);
    unsetenv("KVJIT_CPU_MASK");
    CHECK(result.exit_code == 0);
    CHECK(mentions(result.out, "x86_64-unknown-linux-gnu:x86-64+"));
    CHECK(!mentions(result.out, "sse4."));
    CHECK(!mentions(result.out, "avx"));
}

TEST_CASE("replay says which file is bad, and goes on") {
    const std::string good = golden_file("000_");
    const ChildResult result = run_kvjit({"replay", "/nonexistent.safetensors", good, "/tmp"});
    CHECK(result.exit_code == 2);
    CHECK(mentions(result.err, "/nonexistent.safetensors"));
    CHECK(mentions(result.err, "/tmp: is a directory, expected a regular file"));
    CHECK(mentions(result.out, "3 passed, 0 failed, 2 could not run"));
}

TEST_CASE("replay says once why a file's operators can't run") {
    setenv("KVJIT_COMPILER", "/nowhere", 1);
    const ChildResult result = run_kvjit({"replay", "--cache-dir", "", golden_file("000_")});
    unsetenv("KVJIT_COMPILER");
    CHECK(result.exit_code == 2);
    CHECK_MESSAGE(mentions(result.err,
                           ": MultiHeadCacheAttention, KeyValueCache, MultiHeadAttention: "
                           "KVJIT_COMPILER_MISSING: "),
                  result.err);
    CHECK(result.err.find("KVJIT_COMPILER_MISSING") == result.err.rfind("KVJIT_COMPILER_MISSING"));
    for (const char* op : {"[op=MultiHeadCacheAttention,", "; op=KeyValueCache,", "; op=MultiHeadAttention,"})
        CHECK(mentions(result.err, op));
    CHECK(mentions(result.out, "0 passed, 0 failed, 3 could not run"));
}

/// An empty folder, which lives as long as this object.
class Folder {
public:
    Folder() { CHECK(mkdtemp(path_.data()) != nullptr); }
    ~Folder() { std::filesystem::remove_all(path_); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    std::string file(const std::string& name) const { return path_ + "/" + name; }

private:
    std::string path_ = "/tmp/kvjit-folder-XXXXXX";
};

TEST_CASE("replay waits for no writer of a FIFO, and says what is no regular file") {
    const Folder folder;
    const std::string fifo = folder.file("fifo");
    REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
    const std::string place = folder.file("socket");
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, place.c_str(), place.size());
    const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    REQUIRE(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    const ChildResult result = run_kvjit({"replay", fifo, place, "/dev/null", golden_file("000_")});
    close(listener);
    CHECK(result.exit_code == 2);
    CHECK_MESSAGE(mentions(result.err, fifo + ": is a FIFO, expected a regular file"), result.err);
    CHECK_MESSAGE(mentions(result.err, place + ": is a socket, expected a regular file"), result.err);
    CHECK_MESSAGE(mentions(result.err, "/dev/null: is a device, expected a regular file"), result.err);
    CHECK(mentions(result.out, "3 passed, 0 failed, 3 could not run"));
}

TEST_CASE("replay shows a file's name escaped in its table") {
    const Folder folder;
    const std::string file = folder.file("a\x1b[2J\nb.safetensors");
    std::filesystem::copy_file(golden_file("000_"), file);
    const ChildResult result = run_kvjit({"replay", file});
    CHECK(result.exit_code == 0);
    CHECK(!has_control_characters(result.out));
    CHECK_MESSAGE(mentions(result.out, "a\\x1b[2J\\x0ab  KeyValueCache"), result.out);
}

TEST_CASE("replay finds a wrong result") {
    RecordedFile file(golden_file("000_"));
    SUBCASE("a changed cache byte") {
        file.tensor_bytes("out.cache")[0] ^= std::byte{1};
    }
    SUBCASE("a changed output") {
        file.tensor_bytes("out.attn_output")[3] ^= std::byte{1};
    }
    SUBCASE("a NaN is expected where none may be") {
        for (std::size_t i = 0; i < 4; ++i) file.tensor_bytes("out.attn_output")[i] = std::byte{0xff};
    }
    SUBCASE("a changed lse") {
        file.tensor_bytes("out.lse")[3] ^= std::byte{1};
    }
    const std::string path = file.write();
    const ChildResult result = run_kvjit({"replay", path});
    CAPTURE(result.err);
    CHECK(result.exit_code == 1);
    CHECK(mentions(result.out, "FAIL"));
}

}  // namespace
}  // namespace kvjit::test
