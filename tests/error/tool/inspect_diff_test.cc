// `kvjit inspect --diff`.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "child.h"
#include "support/temporary_folder.h"

namespace kvjit::test {
namespace {

const std::string kStore = "store;variant=simd;revision=1;kHeadDim=64;abi=1;x86_64-unknown-linux-gnu:x86-64-v3";

TEST_CASE("--diff tells what differs between two texts, or files of what inspect printed") {
    const ChildResult texts = run_kvjit({"inspect", "--diff", kStore, "load" + kStore.substr(5)});
    CHECK(texts.exit_code == 0);
    CHECK(texts.out == "store:\n  program: store -> load\n");
    const auto printed = [](const std::string& head_dim) {
        return run_kvjit({"inspect", "head_dim=" + head_dim, "--target", "x86-64-v3", "--emit", "identity"}).out;
    };
    const TemporaryFolder folder;
    const std::string narrow = folder.write("narrow", printed("64")), wide = folder.write("wide", printed("128"));
    const ChildResult equal = run_kvjit({"inspect", "--diff", narrow, narrow});
    CHECK(equal.exit_code == 0);
    CHECK(equal.out ==
          "store: nothing differs\nattend_decode: nothing differs\nattend_prefill: nothing differs\n"
          "merge: nothing differs\n");
    const ChildResult input = run_kvjit({"inspect", "--diff", "-", narrow}, Output::kCaptured, narrow);
    CHECK(input.out == equal.out);
    const ChildResult files = run_kvjit({"inspect", "--diff", narrow, wide});
    CHECK(files.exit_code == 0);
    for (const char* part :
         {"store:\n  constant kHeadDim: 64 -> 128\n", "merge:\n  constant kHeadDim: 64 -> 128\n", "\n  source: "}) {
        CHECK_MESSAGE(mentions(files.out, part), files.out);
    }
    CHECK(!mentions(files.out, "flags"));
    CHECK_MESSAGE(files.out.ends_with("--emit source, before and after, has the texts.\n"), files.out);
}

TEST_CASE("--diff refuses what is no identity, with the reason") {
    const TemporaryFolder folder;
    const std::string empty = folder.write("empty", ""), nul = folder.write("nul", kStore + std::string(1, '\0')),
                      good = folder.write("good", kStore);
    struct Case {
        std::vector<std::string> texts;
        std::string reason;
    };
    const Case cases[] = {
        {{kStore, "store;x"}, "after, line 1: \"store;x\" is no identity"},
        {{"store;\x1b[2J", kStore}, "before, line 1: \"store;\\x1b[2J\" is no identity"},
        {{empty, good}, "before: there is no identity"},
        {{good, nul}, "after: " + nul + ": a NUL byte is in no identity"},
        {{"/nonexistent", kStore}, "before: /nonexistent can't be opened: No such file"},
        {{kStore, "/tmp"}, "after: /tmp can't be read: Is a directory"},
        {{"head_dim=12", "head_dim=64"}, "before: KVJIT_BAD_SPEC: head_dim is \"12\""},
        {{"head_dim=64", "head_dim=x"}, "after: KVJIT_BAD_SPEC: head_dim is \"x\""},
        {{"", kStore}, "--diff is ''; it takes the name of a file"},
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

TEST_CASE("--diff compares two specs") {
    const ChildResult shown =
        run_kvjit({"inspect", "--diff", "op=Merge,head_dim=64", "op=Merge,head_dim=128", "--target", "x86-64-v3"});
    CHECK_MESSAGE(shown.exit_code == 0, shown.err);
    CHECK(mentions(shown.out, "merge:\n  constant kHeadDim: 64 -> 128\n"));
    const ChildResult bad = run_kvjit({"inspect", "--diff", "op=Merge", "op=Mrge"});
    CHECK(bad.exit_code == 2);
    CHECK(mentions(bad.err, "did you mean Merge?"));
}

}  // namespace
}  // namespace kvjit::test
