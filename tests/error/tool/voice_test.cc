// One voice: what is wrong with an argument, what it takes, and what was probably meant.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "child.h"

namespace kvjit::test {
namespace {

struct Case {
    std::vector<std::string> arguments;
    std::string said;  // the end of standard error's line
};

void check_refused(const Case& test) {
    const ChildResult result = run_kvjit(test.arguments);
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    CHECK(result.err.starts_with("kvjit: "));
    CHECK_MESSAGE(result.err.ends_with(test.said + "\n"), result.err);
    CHECK(result.err.find('\n') == result.err.size() - 1);
}

TEST_CASE("misspelt words of the command line get what was meant") {
    for (const Case& test : std::vector<Case>{
             {{"inspct"}, "did you mean inspect?"},
             {{"help", "taregts"}, "did you mean targets?"},
             {{"bundle", "creat"}, "did you mean create?"},
             {{"spec", "lst"}, "did you mean list?"},
             {{"inspect", "--emitt", "asm", "op=Merge"},
              "'--emitt' is no option of kvjit inspect; did you mean --emit? kvjit help inspect says more"},
             {{"bundle", "create", "out", "op=Merge", "--target", "host"},
              "'--target' is no option of kvjit bundle create; did you mean --targets? kvjit help bundle create says "
              "more"},
             {{"--verion"}, "did you mean --version?"},
             {{"cache", "--hlp"},
              "'--hlp' is no option of kvjit cache; it takes --help, or a command: path, list, verify, prune, clear; "
              "did "
              "you mean --help?"},
             {{"replay", "--op", "KeyValueCach", "x"}, "did you mean KeyValueCache?"},
             {{"inspect", "op=Merge", "--program", "sotre"}, "did you mean store?"},
             {{"inspect", "op=Merge", "--emit", "sorce"}, "did you mean source?"},
         }) {
        check_refused(test);
    }
}

TEST_CASE("misspelt fields get what was meant before the list of all") {
    for (const auto& [field, meant] :
         {std::pair{"hed_dim", "head_dim"}, {"causal", "is_causal"}, {"block_size", "page_size"}}) {
        const ChildResult refused = run_kvjit({"inspect", std::string(field) + "=1"});
        CHECK(refused.exit_code == 2);
        CHECK_MESSAGE(mentions(refused.err, "unknown field \"" + std::string(field) + "\"; did you mean " + meant +
                                                "? The fields are op, head_dim, "),
                      refused.err);
    }
}

TEST_CASE("misspelt words of a spec get what was meant") {
    for (const Case& test : std::vector<Case>{
             {{"inspect", "op=MultiHeadCacheAtention"}, "did you mean MultiHeadCacheAttention?"},
             {{"inspect", "op=merge"}, "did you mean Merge?"},
             {{"inspect", "layout=NHD"}, "did you mean flashinfer:NHD?"},
             {{"inspect", "layout=vlm:cpu"}, "did you mean vllm:cpu?"},
             {{"inspect", "cache_mode=paged"}, "did you mean page_table?"},
             {{"inspect", "is_causal=true"}, "did you mean 1?"},
             {{"inspect", "is_alibi=no"}, "did you mean 0?"},
             {{"inspect", "t1=float16"}, "did you mean f16?"},
             {{"inspect", "page_table"}, "did you mean cache_mode=page_table?"},
             {{"inspect", "head_dim:64"}, "did you mean head_dim=64?"},
             {{"bundle", "create", "out", "op=Mrge", "--targets", "host"}, "did you mean Merge?"},
         }) {
        check_refused(test);
    }
}

TEST_CASE("where nothing is likely, nothing is suggested") {
    for (const std::vector<std::string>& arguments :
         std::vector<std::vector<std::string>>{{"frobnicate"},
                                               {"inspect", "colour=red"},
                                               {"inspect", "quant_bit=16"},
                                               {"inspect", "op=Merge", "--zzz"}}) {
        const ChildResult result = run_kvjit(arguments);
        CHECK(result.exit_code == 2);
        CHECK_MESSAGE(!mentions(result.err, "did you mean"), result.err);
    }
}

TEST_CASE("values that are missing, too many or out of range are named with what the option takes") {
    for (const Case& test : std::vector<Case>{
             {{"replay"}, "FILE is missing; kvjit help replay says more"},
             {{"inspect", "op=Merge", "--emit"}, "--emit lacks a value; kvjit help inspect says more"},
             {{"replay", "--threads", "-1", "x"}, "--threads is '-1'; it takes a whole number from 0 to 1024"},
             {{"replay", "--threads", "1x", "x"}, "--threads is '1x'; it takes a whole number from 0 to 1024"},
             {{"replay", "--op", "Softmax", "x"},
              "--op is 'Softmax'; it takes all, MultiHeadCacheAttention, KeyValueCache, MultiHeadAttention, Merge"},
             {{"targets", "more"}, "'more' is one word too many; kvjit help targets says more"},
             {{"inspect", "op=Merge", "--images", "--why"}, "can't be given together"},
             {{"inspect", "op=Merge", "--lines"}, "--lines is for --emit asm; kvjit help inspect says more"},
             {{"inspect", "op=Merge", "--json", "-o", "made/"},
              "made/ is a folder, and --json writes one file: -o FILE; kvjit help inspect says more"},
             {{"inspect", "op=Merge", "--images", "--raw"}, "--raw is for --emit asm; kvjit help inspect says more"},
             {{"replay", "-o", "x", "y"},
              "--output needs --oracle, whose results it writes; kvjit help replay says more"},
             {{"replay", "--oracle", "-o", "x", "y", "z"},
              "--output takes one FILE; there are 2; kvjit help replay says more"},
         }) {
        check_refused(test);
    }
}

TEST_CASE("a layout's family is none of its names") {
    check_refused({{"inspect", "layout=vllm"},
                   "layout is \"vllm\"; of vllm it takes vllm:LBNHC, vllm:LBHNC, vllm:LHBNC, vllm:BLNHC, vllm:BLHNC, "
                   "vllm:BHLNC, vllm:gpu, vllm:cpu, vllm:rocm, vllm:ascend (kvjit spec list layouts has their axes)"});
    check_refused(
        {{"inspect", "layout=flashinfer:XY"},
         "layout is \"flashinfer:XY\"; of flashinfer it takes flashinfer:NHD, flashinfer:HND, flashinfer:NHD:apart, "
         "flashinfer:HND:apart (kvjit spec list layouts has their axes); did you mean flashinfer:NHD?"});
    check_refused({{"inspect", "op=Relayout,to_layout=pmx"},
                   "to_layout is \"pmx\"; of pmx it takes pmx:r1:0, pmx:r1:1, pmx:r1:2, pmx:r1:3, pmx:r2:0, "
                   "pmx:r2:1, pmx:r2:2, pmx:r2:3, pmx:static:NL2THD, pmx:static:LN2HTD (kvjit spec list layouts has "
                   "their axes)"});
    CHECK(mentions(run_kvjit({"inspect", "layout=XY"}).err, "or a name of pmx, vllm, "));
}

TEST_CASE("names of files and folders are not empty") {
    for (const Case& test : std::vector<Case>{
             {{"replay", ""}, "FILE is ''; it takes the name of a file"},
             {{"replay", "--oracle", "-o", "", "x"}, "--output is ''; it takes the name of a file"},
             {{"inspect", "op=Merge", "-o", ""}, "--output is ''; it takes the name of a file"},
             {{"inspect", "op=Merge", "--bundle", ""}, "--bundle is ''; it takes the name of a file"},
             {{"doctor", "--bundle", ""}, "--bundle is ''; it takes the name of a file"},
             {{"bundle", "create", "", "op=Merge", "--targets", "host"}, "OUT is ''; it takes the name of a file"},
             {{"bundle", "create", "out", "--specs", "", "--targets", "host"},
              "--specs is ''; it takes the name of a file"},
             {{"bundle", "extract", "x", "--to", ""}, "--to is ''; it takes the name of a folder"},
         }) {
        check_refused(test);
    }
    const ChildResult none = run_kvjit({"replay", "--cache-dir", "", "/nowhere"});
    CHECK(mentions(none.err, "/nowhere: can't be read"));
}

}  // namespace
}  // namespace kvjit::test
