// What the command says about its arguments and its output.
#include <doctest/doctest.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "child.h"
#include "recorded_file.h"
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

TEST_CASE("commands that don't take Relayout have no help of its fields") {
    for (const char* command : {"record", "bench"}) {
        const std::string help = run_kvjit({"help", command}).out;
        CHECK(mentions(help, "\n  quant_bit "));
        CHECK(!mentions(help, "to_quant_bit"));
        CHECK(!mentions(help, "Merge | Relayout"));
    }
    CHECK(mentions(run_kvjit({"help", "inspect"}).out, "to_quant_bit"));
}

TEST_CASE("targets are listed with what they are, or by their names alone") {
    const ChildResult all = run_kvjit({"targets"});
    CHECK(all.exit_code == 0);
    CHECK(mentions(all.out, "\nx86-64-v3 "));
    CHECK(mentions(all.out, "\nsm_90a "));
    CHECK(mentions(all.out, "CUDA 12.8 and newer compile for it, from 13.0 on only under the name sm_110a"));
    const ChildResult names = run_kvjit({"targets", "--names"});
    CHECK(names.exit_code == 0);
    CHECK(mentions(names.out, "\nx86-64-v4-amx\n"));
    CHECK(mentions(names.out, "\nsm_100f\n"));
    CHECK(!mentions(names.out, " "));
    CHECK(run_kvjit({"targets", "x86-64-v3"}).exit_code == 2);
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
                                  {"inspect", "head_dim=64", "--lines"},
                                  {"inspect", "head_dim=64", "--raw", "--emit", "source"},
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
          {{"--frob", "replay", "x"}, "'--frob' is no option of kvjit; it takes --help, --version, or a command: "},
          {{""}, "'' is no command"},
          {{"help", "foo"}, "'foo' is no command"},
          {{}, "a command of kvjit is missing"}}) {
        CAPTURE(named);
        const ChildResult result = run_kvjit(arguments);
        CHECK(result.exit_code == 2);
        CHECK(result.out.empty());
        CHECK_MESSAGE(mentions(result.err, named), result.err);
        CHECK_MESSAGE(mentions(result.err, "replay, record, inspect, bench, "), result.err);
    }
    const ChildResult result = run_kvjit({"help", "replay", "foo"});
    CHECK(result.exit_code == 2);
    CHECK_MESSAGE(mentions(result.err, "'foo' is one word too many after help replay"), result.err);
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

TEST_CASE("a log that the library writes has its warnings, which are said once") {
    const Variable log("KVJIT_LOG", "warning"), unknown("KVJIT_PREF", "1");
    const TemporaryFolder folder;
    for (const std::vector<std::string>& arguments :
         {std::vector<std::string>{"inspect", "op=Merge,head_dim=64", "--emit", "identity"},
          {"bundle", "create", folder.path("merge.kvjb"), "op=Merge,head_dim=64", "--targets", "x86-64"}}) {
        const ChildResult result = run_kvjit(arguments);
        CHECK(result.exit_code == 0);
        CHECK(result.err ==
              "kvjit: warning: KVJIT_PREF in the environment does nothing: kvjit has no such variable; the nearest is "
              "KVJIT_PERF\n");
    }
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

}  // namespace
}  // namespace kvjit::test
