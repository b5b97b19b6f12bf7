// What the command says about its arguments, its files and its output.
#include <doctest/doctest.h>

#include <string>

#include "child.h"
#include "inspect.h"
#include "recorded_file.h"

namespace kvjit::test {
namespace {

bool mentions(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

TEST_CASE("--version and --help succeed and say what they should") {
    CHECK(run_kvjit({"--version"}).out.starts_with("kvjit 0."));
    for (const auto& arguments : {std::vector<std::string>{"--help"},
                                  {"help"},
                                  {"help", "replay"},
                                  {"replay", "--help"},
                                  {"inspect", "--help"}}) {
        const ChildResult result = run_kvjit(arguments);
        CHECK(result.exit_code == 0);
        CHECK(mentions(result.out, "Examples:"));
    }
    const std::string help = run_kvjit({"inspect", "--help"}).out;
    for (const char* field : {"op", "head_dim", "quant_group", "cache_mode", "layout", "attn_mask"}) {
        CHECK(mentions(help, field));
    }
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

TEST_CASE("a bad spec names the field and what it takes") {
    const ChildResult result = run_kvjit({"inspect", "head_dim=12"});
    CHECK(mentions(result.err, "head_dim"));
    CHECK(mentions(result.err, "multiple of 8"));
}

TEST_CASE("the command has a name for each program") {
    std::uint32_t named = 0;
    for (const auto& [name, phases] : tool::kPrograms) named |= name == "all" ? 0 : phases;
    CHECK(named == KVJIT_ALL_PHASES);
    CHECK(tool::kPrograms.at("all") == KVJIT_ALL_PHASES);
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

TEST_CASE("output that can't be written is an error, not a silent loss or death") {
    for (const Output output : {Output::kClosed, Output::kFull, Output::kBrokenPipe}) {
        for (const auto& arguments :
             {std::vector<std::string>{"--help"}, {"inspect", "op=KeyValueCache", "head_dim=64", "--emit", "source"}}) {
            const ChildResult result = run_kvjit(arguments, output);
            CHECK(result.signal == 0);
            CHECK(result.exit_code == 2);
            CHECK(mentions(result.err, "standard output"));
        }
    }
}

TEST_CASE("replay says which file is bad, and goes on") {
    const std::string good = golden_file("000_");
    const ChildResult result = run_kvjit({"replay", "/nonexistent.safetensors", good, "/tmp"});
    CHECK(result.exit_code == 2);
    CHECK(mentions(result.err, "/nonexistent.safetensors"));
    CHECK(mentions(result.err, "/tmp: is not a regular file"));
    CHECK(mentions(result.out, "3 passed, 0 failed, 2 could not run"));
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
