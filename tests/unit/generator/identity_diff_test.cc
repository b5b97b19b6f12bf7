// What differs between identities, said in words. The words here are written by hand.
#include <doctest/doctest.h>

#include <string>

#include "generator/identity.h"
#include "lowered.h"

using namespace kvjit::gen;

namespace {

const std::string kCpu = "x86_64-unknown-linux-gnu:";
const std::string kBase = "store;variant=simd;revision=1;kHeadDim=128;T1=f16_t;abi=1;" + kCpu + "x86-64-v3";
const std::string kMade = "\nprovenance: source=" + std::string(64, 'a') +
                          ";libone build=12\nlibtwo build=34\nlibtwo build=56\n"
                          "flags -x c++ -O2 passes function(sroa,early-cse),cgscc(inline)\n";

std::string with(std::string text, std::string_view from, std::string_view to) {
    REQUIRE(text.contains(from));
    return text.replace(text.find(from), from.size(), to);
}

std::string diff(const std::string& before, const std::string& after) {
    const Result<std::string> text = diff_stages(before, after);
    REQUIRE_MESSAGE(text.has_value(), text.error().message);
    return *text;
}

/// The one line under "store:".
std::string line(const std::string& before, const std::string& after) {
    const std::string text = diff(before, after), head = "store:\n  ";
    REQUIRE_MESSAGE(text.starts_with(head), text);
    CHECK_MESSAGE(text.find('\n', head.size()) == text.size() - 1, text);
    return text.substr(head.size(), text.size() - head.size() - 1);
}

std::string changed(std::string_view from, std::string_view to) {
    return line(kBase, with(kBase, from, to));
}

std::string target(const std::string& before, const std::string& after) {
    return line(with(kBase, kCpu + "x86-64-v3", before), with(kBase, kCpu + "x86-64-v3", after));
}

std::string made(std::string_view from, std::string_view to) {
    return line(kBase + kMade, with(kBase + kMade, from, to));
}

}  // namespace

TEST_CASE("equal texts differ in nothing, with provenances and without") {
    CHECK(diff(kBase, kBase) == "store: nothing\n");
    CHECK(diff(kBase, "identity: " + kBase + "\n") == "store: nothing\n");
    CHECK(diff(kBase + kMade, kBase + kMade) == "store: nothing\n");
}

TEST_CASE("each part of an identity has its words") {
    CHECK(changed("store", "load") == "program: store -> load");
    CHECK(changed("simd", "mma") == "variant: simd -> mma: another algorithm");
    CHECK(changed("revision=1", "revision=12") == "revision: 1 -> 12: the kernel's results or arguments changed");
    CHECK(changed("kHeadDim=128", "kHeadDim=64") == "constant kHeadDim: 128 -> 64");
    CHECK(changed("kHeadDim=128;", "") == "constant kHeadDim: 128, gone");
    CHECK(changed(";abi", ";kGroup=4;abi") == "constant kGroup: 4, new");
    CHECK(changed("kHeadDim=128;T1=f16_t", "T1=f16_t;kHeadDim=128") == "constants: the same in another order");
    CHECK(changed("abi=1", "abi=2") == "kernel ABI: 1 -> 2: kernels take their arguments in another way");
}

TEST_CASE("of targets it is said which features came and went") {
    CHECK(target(kCpu + "x86-64-v3", kCpu + "x86-64-v4") ==
          "target: x86-64-v3 -> x86-64-v4: added avx512f avx512bw avx512cd avx512dq avx512vl");
    CHECK(target(kCpu + "x86-64-v3+avxvnni", kCpu + "x86-64-v3+sha+vaes+aes") ==
          "target: x86-64-v3+avxvnni -> x86-64-v3+sha+vaes+aes: added aes sha vaes; removed avxvnni");
    CHECK(target(kCpu + "x86-64-v2", kCpu + "x86-64") ==
          "target: x86-64-v2 -> x86-64: removed crc32 cx16 popcnt sahf sse3 ssse3 sse4.1 sse4.2");
    CHECK(target(kCpu + "x86-64-v4-vnni+avx512bf16", kCpu + "x86-64-v4-bf16") ==
          "target: x86-64-v4-vnni+avx512bf16 -> x86-64-v4-bf16: the same features, written in another way");
    CHECK(target("nvptx64-nvidia-cuda:sm_90a", "nvptx64-nvidia-cuda:sm_100f") ==
          "target: sm_90a -> sm_100f: another architecture");
    CHECK(target("cuda-emulated:" + kCpu + "x86-64-v3", "cuda-emulated:" + kCpu + "x86-64-v3+gfni") ==
          "target: x86-64-v3 -> x86-64-v3+gfni: added gfni");
    CHECK(target(kCpu + "x86-64-v3", "nvptx64-nvidia-cuda:sm_80") ==
          "target: x86_64-unknown-linux-gnu:x86-64-v3 -> nvptx64-nvidia-cuda:sm_80: another kind of machine");
    CHECK(target("cuda-emulated:" + kCpu + "x86-64-v3", kCpu + "x86-64-v3") ==
          "target: cuda-emulated:x86_64-unknown-linux-gnu:x86-64-v3 -> x86_64-unknown-linux-gnu:x86-64-v3: another "
          "kind of machine");
}

TEST_CASE("each part of a provenance has its words") {
    const std::string old_source(64, 'a'), new_source(64, 'b');
    CHECK(made(old_source, new_source) ==
          "source: " + old_source + " -> " + new_source + ": digests of the rendered text");
    CHECK(made("libone build=12", "libone build=13") == "compiler libone: build=12 -> build=13");
    CHECK(made("libtwo build=56", "libtwo build=57") == "compiler libtwo: build=56 -> build=57");
    CHECK(made("libtwo build=34\n", "") == "compiler libtwo: build=34, gone");
    CHECK(made("libone", "libnew build=1\nlibone") == "compiler libnew: build=1, new");
    CHECK(made("libone build=12\nlibtwo build=34", "libtwo build=34\nlibone build=12") ==
          "compiler's libraries: the same in another order");
    CHECK(made("-O2", "-O3 -g") == "flags: added -O3 -g; removed -O2");
    CHECK(made("-O2", "-O2 -x") == "flags: added -x");
    CHECK(made("-x c++ -O2", "-O2 -x c++") == "flags: the same in another order");
    CHECK(made("early-cse", "gvn") == "passes: added gvn; removed early-cse");
    CHECK(made("sroa,early-cse", "early-cse,sroa") == "passes: the same, ordered or nested in another way");
    CHECK(made("cgscc(inline)", "cgscc,inline") == "passes: the same, ordered or nested in another way");
    CHECK(made(" passes function(sroa,early-cse),cgscc(inline)", "") ==
          "passes: removed function sroa early-cse cgscc inline");
    CHECK(line(kBase + kMade, kBase) == "provenance: not compared: the text after lacks it");
    CHECK(line(kBase, kBase + kMade) == "provenance: not compared: the text before lacks it");
}

TEST_CASE("several differences are told in the order of the text") {
    const std::string after =
        with(with(kBase, "kHeadDim=128", "kHeadDim=64"), "revision=1", "revision=2") + with(kMade, "-O2", "-O3");
    CHECK(diff(kBase + kMade, after) ==
          "store:\n"
          "  revision: 1 -> 2: the kernel's results or arguments changed\n"
          "  constant kHeadDim: 128 -> 64\n"
          "  flags: added -O3; removed -O2\n");
}

TEST_CASE("of several programs those of one name are compared, and it is said which came and went") {
    const std::string load = with(kBase, "store", "load"), merge = with(kBase, "store", "merge");
    CHECK(diff(kBase + "\n" + load, with(load, "simd", "mma") + "\n" + merge) ==
          "store: gone\n"
          "load:\n"
          "  variant: simd -> mma: another algorithm\n"
          "merge: new\n");
    CHECK(diff(kBase, load + "\n" + kBase) == "store: nothing\nload: new\n");
}

TEST_CASE("a text that can't be read is named") {
    CHECK(diff_stages("x", kBase).error().argument == "before");
    CHECK(diff_stages(kBase, "x").error().argument == "after");
}

TEST_CASE("every two identities that differ differ in words, and in no other case") {
    std::vector<std::string> texts;
    for (const char* name : {"x86-64-v3", "x86-64-v4", "sm_90a"}) {
        const Target target = *named_target(name);
        for (const char* spec : {"head_dim=64,group=4", "head_dim=64,group=4,quant_bit=8", "op=Merge"}) {
            for (const Program& program : lowered(spec, target)) texts.push_back(identity_text(program, target));
        }
    }
    for (const std::string& before : texts) {
        for (const std::string& after : texts) {
            CHECK(diff(before, after).ends_with(": nothing\n") == (before == after));
        }
    }
}
