// Every stage that `kvjit inspect` shows, and where it puts them.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "child.h"
#include "support/read_file.h"
#include "support/temporary_folder.h"

namespace kvjit::test {
namespace {

const std::vector<std::string> kMerge = {"inspect", "op=Merge,head_dim=64", "--target", "x86-64-v3"};

ChildResult inspect(std::vector<std::string> arguments, const std::vector<std::string>& of = kMerge) {
    arguments.insert(arguments.begin(), of.begin(), of.end());
    return run_kvjit(arguments);
}

TEST_CASE("the first sight of a spec is the summary, without the processor's features") {
    const ChildResult shown = inspect({});
    CHECK(shown.exit_code == 0);
    CHECK(shown.err.empty());
    CHECK_MESSAGE(shown.out.starts_with("merge: simd revision "), shown.out);
    for (const char* part :
         {"\n  code  ", "\n  frame  ", "\n  spills  ", "\n  hot loop  ", "32-byte vectors", " FMAs, "}) {
        CHECK_MESSAGE(mentions(shown.out, part), shown.out);
    }
    CHECK(!mentions(shown.out, "+sse"));
    CHECK(inspect({"--emit", "summary"}).out == shown.out);
}

TEST_CASE("assembly is instructions, with the source's lines on request, and raw as the compiler made it") {
    const std::string plain = inspect({"--emit", "asm"}).out;
    CHECK(mentions(plain, "kvjit_merge:\n"));
    CHECK(!mentions(plain, "\n\t."));
    CHECK(mentions(inspect({"--emit", "asm", "--lines"}).out, "# cpu/merge.cc:"));
    CHECK(mentions(inspect({"--emit", "asm", "--raw"}).out, "\t.section"));
    CHECK(mentions(inspect({"--emit", "asm", "--raw", "--lines"}).err, "can't be given together"));
}

TEST_CASE("IR is there before and after optimisation") {
    const std::string before = inspect({"--emit", "ir-unoptimised"}).out, after = inspect({"--emit", "ir"}).out;
    CHECK(mentions(before, "alloca"));
    CHECK(mentions(before, "define "));
    CHECK(mentions(after, "define "));
    CHECK(before.size() > after.size());
}

TEST_CASE("several stages have titles on standard output, and files in a folder") {
    const ChildResult both = inspect({"--emit", "identity,summary"});
    CHECK(both.exit_code == 0);
    CHECK(both.out.starts_with("==== merge: identity ====\nidentity: merge;"));
    CHECK(mentions(both.out, "\n==== merge: summary ====\nmerge: simd"));
    const TemporaryFolder folder;
    const ChildResult written =
        inspect({"--emit", "identity,summary,source,ir,asm,object,log", "-o", folder.path("all")});
    CHECK(written.exit_code == 0);
    CHECK(written.out == folder.path("all") + ": 7 files\n");
    for (const char* file :
         {"merge.identity.txt", "merge.summary.txt", "merge.cc", "merge.ll", "merge.s", "merge.o", "merge.log"}) {
        CHECK_MESSAGE(std::filesystem::exists(folder.path("all/") + file), file);
    }
    CHECK(read_file(folder.path("all/merge.o")).substr(1, 3) == "ELF");
    const ChildResult objects =
        run_kvjit({"inspect", "head_dim=64", "--target", "x86-64", "--emit", "object", "-o", folder.path("objects/")});
    CHECK_MESSAGE(objects.exit_code == 0, objects.err);
    CHECK(std::filesystem::exists(folder.path("objects/decode.o")));
    CHECK(std::filesystem::exists(folder.path("objects/store.o")));
}

TEST_CASE("as JSON a summary is numbers, and objects have no place") {
    const ChildResult shown = inspect({"--json", "--emit", "summary,identity"});
    CHECK(shown.exit_code == 0);
    const auto json = nlohmann::json::parse(shown.out);
    CHECK(json["spec"] == "op=Merge,head_dim=64");
    const auto& program = json["programs"][0];
    CHECK(program["program"] == "merge");
    CHECK(program["summary"]["code_bytes"] > 0);
    CHECK(program["summary"]["frame_bytes"] >= 0);
    CHECK(program["summary"]["hot_loop"]["vector_bytes"] == 32);
    CHECK(program["identity"].get<std::string>().starts_with("identity: merge;"));
    CHECK(nlohmann::json::parse(inspect({"--json", "--images"}).out)["programs"].size() == 1);
    const ChildResult object = inspect({"--json", "--emit", "object"});
    CHECK(object.exit_code == 2);
    CHECK(mentions(object.err, "--json has no room for an object's bytes"));
}

TEST_CASE("stages that a target lacks are refused with those that it has") {
    for (const char* stage : {"ptx", "sass", "cubin"}) {
        const ChildResult refused = inspect({"--emit", stage});
        CHECK(refused.exit_code == 2);
        CHECK_MESSAGE(mentions(refused.err, std::string("--emit is ") + stage + ", which code of CPUs doesn't have"),
                      refused.err);
    }
    for (const char* stage : {"ir", "ir-unoptimised"}) {
        const ChildResult refused =
            run_kvjit({"inspect", "op=Merge", "--target", "sm_80", "--emit", stage, "--program", "merge"});
        CHECK(refused.exit_code == 2);
        CHECK_MESSAGE(mentions(refused.err, "which CUDA programs don't have"), refused.err);
    }
    CHECK(mentions(inspect({"--emit", "asm,wasm"}).err, "--emit is 'wasm'; it takes summary, identity"));
}

TEST_CASE("a name that is no target is refused with what names are like") {
    const ChildResult refused = run_kvjit({"inspect", "op=Merge,head_dim=64", "--target", "h100"});
    CHECK(refused.exit_code == 2);
    CHECK_MESSAGE(mentions(refused.err, "a GPU's compute capability from sm_80 on (sm_90a is an H100's)"), refused.err);
    CHECK(mentions(refused.err, "kvjit targets lists them"));
}

TEST_CASE("without a compiler the summary says what it lacks") {
    const Variable compiler("KVJIT_COMPILER", "/nowhere/libkvjit_compiler.so"), cache("KVJIT_CACHE_DIR", "");
    const ChildResult shown = inspect({});
    CHECK(shown.exit_code == 0);
    CHECK(mentions(shown.out, "lacks      code: KVJIT_COMPILER_MISSING"));
    CHECK(mentions(shown.out, "lacks      frame, spills, hot loop, for the reason above\n"));
}

TEST_CASE("what the compiler refuses has no summary, as it has no other stage") {
    const Variable nvrtc("KVJIT_NVRTC", KVJIT_TEST_FAKE_NVRTC), cache("KVJIT_CACHE_DIR", "");  // of CUDA 12.8
    const std::vector<std::string> of = {"inspect", "op=Merge,head_dim=64", "--target", "sm_110"};
    const auto check_refused = [&](std::vector<std::string> arguments) {
        const ChildResult refused = inspect(arguments, of);
        CHECK(refused.exit_code == 2);
        CHECK_MESSAGE(mentions(refused.err, "merge: KVJIT_BAD_TARGET: target is sm_110; this NVRTC compiles for"),
                      refused.err);
    };
    check_refused({});
    check_refused({"--json"});
    check_refused({"--emit", "identity,summary"});
    CHECK(inspect({"--emit", "identity"}, of).exit_code == 0);
}

/// A folder with a program of this name that prints its arguments and its file's first bytes.
struct FakeTool {
    explicit FakeTool(const std::string& name, const std::string& script) {
        const std::string path = folder.write(name, "#!/bin/sh\n" + script);
        chmod(path.c_str(), 0700);
    }
    TemporaryFolder folder;
};

bool has_nvrtc() {
    return run_kvjit({"inspect", "op=Merge", "--target", "sm_80", "--emit", "cubin", "--program", "merge"}).exit_code ==
           0;
}

TEST_CASE("CUDA: PTX, cubin and SASS, through whichever of NVIDIA's tools there is" * doctest::skip(!has_nvrtc())) {
    const std::vector<std::string> of = {"inspect", "op=Merge,head_dim=64", "--target", "sm_80", "--program", "merge"};
    CHECK(mentions(inspect({"--emit", "ptx"}, of).out, ".target sm_80"));
    CHECK(inspect({"--emit", "asm"}, of).out == inspect({"--emit", "ptx"}, of).out);
    CHECK(inspect({"--emit", "cubin"}, of).out == inspect({"--emit", "object"}, of).out);
    for (const char* part : {"registers", "occupancy", "shared", "spills"}) CHECK(mentions(inspect({}, of).out, part));
    const std::string path = getenv("PATH");
    {
        const FakeTool tool("nvdisasm", "echo \"$1\"; head -c 4 \"$2\" | tail -c 3\n");
        const Variable first("PATH", tool.folder.path() + ":" + path);
        CHECK(inspect({"--emit", "sass"}, of).out == "-c\nELF");
    }
    {
        const FakeTool tool("nvdisasm", "echo it hurts >&2; exit 3\n");
        const Variable first("PATH", tool.folder.path() + ":" + path);
        const ChildResult failed = inspect({"--emit", "sass"}, of);
        CHECK(failed.exit_code == 2);
        CHECK_MESSAGE(mentions(failed.err, "nvdisasm failed: it hurts"), failed.err);
    }
    if (std::filesystem::exists("/usr/local/cuda/bin/nvdisasm") ||
        std::filesystem::exists("/usr/local/cuda/bin/cuobjdump"))
        return;
    const Variable none("PATH", "/nowhere");
    const ChildResult missing = inspect({"--emit", "sass"}, of);
    CHECK(missing.exit_code == 2);
    CHECK_MESSAGE(mentions(missing.err, "install NVIDIA's package cuda-nvdisasm-13-0"), missing.err);
}

/// nvdisasm's listing of a loop: two loads and a store of four floats each, and as many sums. A line says where from.
constexpr const char* kListing =
    "echo \"//$1 $2\"; cat <<'END'\n"
    "\t.section\t.text.kvjit_merge,\"ax\",@progbits\n"
    "        /*0000*/    MOV R1, c[0x0][0x28] ;\n"
    ".L_x_1:\n"
    "\t//## File \"templates/cuda/merge.cu\", line 40\n"
    "        /*0010*/    LDG.E.128 R4, desc[UR4][R2.64] ;\n"
    "        /*0020*/    LDG.E.128 R8, desc[UR4][R2.64+0x10] ;\n"
    "        /*0030*/    FADD R4, R4, R8 ;\n"
    "        /*0040*/    STG.E.128 desc[UR4][R6.64], R4 ;\n"
    "        /*0050*/    @P0 BRA `(.L_x_1) ;\n"
    "        /*0060*/    EXIT ;\n"
    "END\n";

TEST_CASE("CUDA: a summary has the figures of what nvdisasm lists" * doctest::skip(!has_nvrtc())) {
    const std::vector<std::string> of = {"inspect", "op=Merge,head_dim=64", "--target", "sm_80", "--program", "merge"};
    const FakeTool tool("nvdisasm", kListing);
    const Variable first("PATH", tool.folder.path() + ":" + getenv("PATH"));
    const std::string text = inspect({}, of).out;
    for (const char* part : {"\n  code has   7 instructions: 1 float, 1 int, 3 global, 2 control; 16-byte accesses\n",
                             "\n  hot loop   5 instructions: 1 float, 3 global, 1 control; 16-byte accesses\n",
                             "\n             as they stand there; at 0x10\n"}) {
        CHECK_MESSAGE(mentions(text, part), text);
    }
    CHECK(!mentions(text, "predicted"));
    const auto summary = nlohmann::json::parse(inspect({"--json"}, of).out)["programs"][0]["summary"];
    CHECK(summary["code"]["instructions"] == 7);
    CHECK(summary["hot_loop"]["pipes"]["global"] == 3);
    CHECK(summary["hot_loop"]["lines"][0]["line"] == "cuda/merge.cu:40");
    CHECK(summary["lacks"].empty());
}

TEST_CASE("CUDA: where nvdisasm fails a summary says what it said" * doctest::skip(!has_nvrtc())) {
    const FakeTool tool("nvdisasm", "echo it hurts >&2; exit 3\n");
    const Variable first("PATH", tool.folder.path() + ":" + getenv("PATH"));
    const ChildResult shown = run_kvjit({"inspect", "op=Merge,head_dim=64", "--target", "sm_80", "--program", "merge"});
    CHECK(shown.exit_code == 0);
    CHECK_MESSAGE(mentions(shown.out, "/nvdisasm failed: it hurts\n"), shown.out);
    CHECK(!mentions(shown.out, "hurts\n\n"));
}

TEST_CASE("CUDA: without nvdisasm a summary says how to get it" * doctest::skip(!has_nvrtc())) {
    const std::vector<std::string> of = {"inspect", "op=Merge,head_dim=64", "--target", "sm_80", "--program", "merge"};
    if (std::filesystem::exists("/usr/local/cuda/bin/nvdisasm")) return;
    const Variable none("PATH", "/nowhere");
    const ChildResult shown = inspect({}, of);
    CHECK(shown.exit_code == 0);
    CHECK_MESSAGE(mentions(shown.out, "lacks      accesses, hot loop, predicted shares: nvdisasm is neither in $PATH"),
                  shown.out);
    CHECK(mentions(shown.out, "install NVIDIA's package cuda-nvdisasm-13-0"));
    CHECK(mentions(shown.out, "\n  registers  "));
}

}  // namespace
}  // namespace kvjit::test
