// Names of engines' layouts: what each stands for, and that it agrees with the fields beside it.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

#include "generator/layouts.h"
#include "generator/spec.h"
#include "generator/spec_list.h"

using namespace kvjit::gen;

namespace {

/// What the spec of a name prints, without its op. Axes as the engines' documents have them: their blocks, tokens,
/// layers, heads and elements in kvjit's letters.
struct Meaning {
    std::string_view name;
    std::string_view text;
};
constexpr Meaning kMeanings[] = {
    {"pmx:r1:0", ""},
    {"pmx:r1:1", "layout=LT2HD"},
    {"pmx:r1:2", "layout=LHT2D"},
    {"pmx:r1:3", "layout=2LHTD"},
    {"pmx:r2:0", ""},
    {"pmx:r2:1", "layout=LT2HD"},
    {"pmx:r2:2", "layout=L2THD"},
    {"pmx:r2:3", "layout=L2HTD"},
    {"pmx:static:NL2THD", "cache_mode=sequence_table,layout=NL2THD"},
    {"pmx:static:LN2HTD", "cache_mode=sequence_table,layout=LN2HTD"},
    {"vllm:LBNHC", "cache_mode=block_table,layout=LNTH2D"},
    {"vllm:LBHNC", "cache_mode=block_table,layout=LNHT2D"},
    {"vllm:LHBNC", "cache_mode=block_table,layout=LHNT2D"},
    {"vllm:BLNHC", "cache_mode=block_table,layout=NLTH2D"},
    {"vllm:BLHNC", "cache_mode=block_table,layout=NLHT2D"},
    {"vllm:BHLNC", "cache_mode=block_table,layout=NHLT2D"},
    {"vllm:gpu", "cache_mode=block_table,layout=2NTHD"},
    {"vllm:cpu", "cache_mode=block_table,layout=2NHTD"},
    {"vllm:rocm", "cache_mode=block_table,layout=NHDTd8,value_layout=NHDT"},
    {"vllm:ascend", "cache_mode=block_table,layout=NTHD"},
    {"flashinfer:NHD", "cache_mode=block_table,layout=N2THD"},
    {"flashinfer:HND", "cache_mode=block_table,layout=N2HTD"},
    {"flashinfer:NHD:apart", "cache_mode=block_table,layout=NTHD"},
    {"flashinfer:HND:apart", "cache_mode=block_table,layout=NHTD"},
    {"trtllm", "cache_mode=block_table,layout=N2HTD"},
    {"trtllm:pool", "cache_mode=block_table,layout=NL2HTD"},
    {"ksana", "cache_mode=block_pointers,layout=2LTHD"},
    {"ksana:pool", "cache_mode=block_table,layout=N2LTHD"},
    {"atb", "cache_mode=block_table,layout=NTHD"},
    {"sglang", "cache_mode=page_table,page_size=1,layout=THD"},
    {"sglang:indices", "cache_mode=token_table,layout=THD"},
    {"llama.cpp", "layout=THD"},
    {"dense:BHTD", "cache_mode=sequence_table,layout=NHTD"},
    {"dense:BTHD", "cache_mode=sequence_table,layout=NTHD"},
    {"lmcache:NB_NL_TWO_BS_NH_HS", "cache_mode=block_table,layout=NL2THD"},
    {"lmcache:NB_NL_TWO_NH_BS_HS", "cache_mode=block_table,layout=NL2HTD"},
    {"lmcache:NL_X_TWO_NB_BS_NH_HS", "cache_mode=block_table,layout=2NTHD"},
    {"lmcache:NL_X_TWO_NB_NH_BS_HS", "cache_mode=block_table,layout=2NHTD"},
    {"lmcache:NL_X_NB_TWO_BS_NH_HS", "cache_mode=block_table,layout=N2THD"},
    {"lmcache:NL_X_NB_TWO_NH_BS_HS", "cache_mode=block_table,layout=N2HTD"},
    {"lmcache:NL_X_NB_BS_NH_CS", "cache_mode=block_table,layout=NTH2D"},
    {"lmcache:NL_X_NB_NH_BS_CS", "cache_mode=block_table,layout=NHT2D"},
    {"lmcache:NL_X_TWO_X_NB_BS_NH_HS", "cache_mode=block_table,layout=NTHD"},
    {"lmcache:TWO_X_NL_X_NB_BS_NH_HS", "cache_mode=block_table,layout=NTHD"},
    {"lmcache:TWO_X_NL_X_NBBS_NH_HS", "layout=THD"},
    {"lmcache:KV_2LTD", "layout=2LTHD"},
    {"lmcache:KV_2TD", "layout=2THD"},
    {"lmcache:KV_T2D", "layout=T2HD"},
};

std::string canonical(std::string_view text) {
    const Result<KernelSpec> spec = parse_spec(text);
    REQUIRE_MESSAGE(spec.has_value(), text, ": ", spec.error().message);
    return print_spec(*spec);
}

std::string joined(std::string_view op, std::string_view rest) {
    return "op=" + std::string(op) + (rest.empty() ? "" : ",") + std::string(rest);
}

}  // namespace

TEST_CASE("each name has its meaning, for every operator with a cache") {
    REQUIRE(std::ssize(kMeanings) == std::ssize(kNamedLayouts));
    for (const auto& [name, text] : kMeanings) {
        CAPTURE(name);
        CHECK(std::ranges::count(kNamedLayouts, name, &NamedLayout::name) == 1);
        for (const char* op : {"KeyValueCache", "MultiHeadCacheAttention"})
            CHECK(canonical(joined(op, "layout=" + std::string(name))) == joined(op, text));
    }
}

TEST_CASE("a name is what its row of the table says, letter by letter") {
    for (const NamedLayout& named : kNamedLayouts) {
        CAPTURE(named.name);
        const std::string by_fields = std::string(named.sets) + ",layout=" + std::string(named.order);
        CHECK(canonical("layout=" + std::string(named.name)) == canonical(by_fields));
        CHECK(canonical("head_dim=64,layout=" + std::string(named.name) + "," + std::string(named.sets)) ==
              canonical("head_dim=64," + by_fields));
        CHECK(!named.users.empty());
        if (!named.sets.contains("value_layout=layout")) continue;
        const std::string order(named.order);  // may be said of the values, too
        CHECK(canonical("layout=" + std::string(named.name) + ",value_layout=" + order) == canonical(by_fields));
    }
}

TEST_CASE("PMX's names go without their family, and revision 2's without their revision") {
    for (const char digit : {'0', '1', '2', '3'}) {
        for (const std::string revision : {"r1:", "r2:"})
            CHECK(canonical("layout=" + revision + digit) == canonical("layout=pmx:" + revision + digit));
        CHECK(canonical(std::string("layout=") + digit) == canonical(std::string("layout=pmx:r2:") + digit));
    }
}

TEST_CASE("a field beside a name agrees with it, whichever comes first") {
    struct Conflict {
        std::string_view layout, other;
        std::string_view argument;
        std::string_view says;
    };
    const Conflict conflicts[] = {
        {"vllm:LBNHC", "cache_mode=page_table", "cache_mode",
         "cache_mode is page_table; layout=vllm:LBNHC sets it to block_table; leave it out, or give the order alone, "
         "layout=LNTH2D"},
        {"ksana", "cache_mode=block_table", "cache_mode", "sets it to block_pointers"},
        {"ksana", "cache_mode=offset", "cache_mode", "cache_mode is offset"},
        {"sglang", "page_size=16", "page_size", "page_size is 16; layout=sglang sets it to 1"},
        {"sglang", "cache_mode=token_table", "cache_mode", "sets it to page_table"},
        {"atb", "value_layout=NHTD", "value_layout", "value_layout is NHTD; layout=atb sets it to layout"},
        {"dense:BHTD", "cache_mode=block_table", "cache_mode", "sets it to sequence_table"},
        {"pmx:static:LN2HTD", "cache_mode=offset", "cache_mode", "sets it to sequence_table"},
    };
    for (const Conflict& conflict : conflicts) {
        const std::string layout = "layout=" + std::string(conflict.layout), other(conflict.other);
        for (const std::string& text : {layout + "," + other, other + "," + layout, other + " head_dim=64 " + layout}) {
            const Result<KernelSpec> spec = parse_spec(text);
            REQUIRE_MESSAGE(!spec.has_value(), text);
            CHECK(spec.error().status == KVJIT_BAD_SPEC);
            CHECK(spec.error().argument == conflict.argument);
            CHECK_MESSAGE(spec.error().message.contains(conflict.says), spec.error().message);
        }
    }
    CHECK(parse_spec("layout=sglang,page_size=16").error().value == 16);
    CHECK(parse_spec("layout=sglang,page_size=16").error().limit == 1);
}

TEST_CASE("what a name leaves open is the caller's") {
    CHECK(canonical("page_size=16,index_type=i32,quant_bit=8,layout=flashinfer:HND") ==
          "op=MultiHeadCacheAttention,quant_bit=8,cache_mode=block_table,page_size=16,index_type=i32,layout=N2HTD");
    CHECK(canonical("layout=pmx:r1:2,cache_mode=token_table") ==
          "op=MultiHeadCacheAttention,cache_mode=token_table,layout=LHT2D");
}

TEST_CASE("a layout that is none, or that the operator has no use for") {
    const auto refused = [](const char* text) {
        const Result<KernelSpec> spec = parse_spec(text);
        REQUIRE_MESSAGE(!spec.has_value(), text);
        CHECK(spec.error().argument == "layout");
        return spec.error().message;
    };
    for (const char* text : {"layout=r3:0", "layout=:", "layout=vlm", "layout=kvcache:NHD"}) {
        const std::string says = refused(text);
        CHECK_MESSAGE(
            says.contains("pmx, vllm, flashinfer, trtllm, ksana, atb, sglang, llama.cpp, dense, lmcache, as "), says);
    }
    for (const auto& [text, whole] : {std::pair{"layout=vllm", "of vllm it takes vllm:LBNHC, vllm:LBHNC, "},
                                      {"layout=vllm:", "of vllm it takes vllm:LBNHC, vllm:LBHNC, "},
                                      {"layout=vllm:lbnhc", "of vllm it takes vllm:LBNHC, vllm:LBHNC, "},
                                      {"layout=pmx:2", "of pmx it takes pmx:r1:0, pmx:r1:1, "},
                                      {"layout=pmx:r1:4", "of pmx it takes pmx:r1:0, pmx:r1:1, "},
                                      {"layout=ksana:", "of ksana it takes ksana, ksana:pool (kvjit"},
                                      {"layout=pmx:r2:10", "of pmx it takes pmx:r1:0, pmx:r1:1, "}}) {
        const std::string says = refused(text);
        CHECK_MESSAGE(says.contains(whole), says);
        CHECK_MESSAGE(!says.contains("an order of"), says);
    }
    const Result<KernelSpec> merge = parse_spec("op=Merge,layout=ksana");
    REQUIRE(!merge.has_value());
    CHECK(merge.error().message.starts_with("layout is 2LTHD; op=Merge has no use for it"));
    CHECK(parse_spec("layout=atb,layout=NTHD").error().message.contains("once"));
}

TEST_CASE("lists of specs take names, and what they make is told by its letters") {
    const Result<SpecList> list = parse_spec_list(
        "op={KeyValueCache,MultiHeadCacheAttention} head_dim=64 layout={vllm:LBNHC,ksana,pmx:r1:2} # an engine's\n"
        "op=MultiHeadCacheAttention head_dim=64 layout=LNTH2D cache_mode=block_table\n",
        100);
    REQUIRE_MESSAGE(list.has_value(), list.error().message);
    std::set<std::string> texts;
    for (const auto& entry : list->specs) texts.insert(print_spec(entry.spec));
    CHECK(list->specs.size() == 6);  // the second line has been made before
    CHECK(texts.contains("op=KeyValueCache,head_dim=64,cache_mode=block_pointers,layout=2LTHD"));
    CHECK(texts.contains("op=MultiHeadCacheAttention,head_dim=64,cache_mode=block_table,layout=LNTH2D"));
    CHECK(texts.contains("op=KeyValueCache,head_dim=64,layout=LHT2D"));

    const Result<SpecList> mixed =
        parse_spec_list("op=KeyValueCache layout={ksana,ksana:pool} cache_mode={block_table,block_pointers}\n", 100);
    REQUIRE_MESSAGE(mixed.has_value(), mixed.error().message);
    CHECK(mixed->specs.size() == 2);
    REQUIRE(mixed->left_out.size() == 2);
    CHECK(mixed->left_out[0].reason.message.contains("layout=ksana sets it to block_pointers"));

    const Result<SpecList> refused = parse_spec_list("layout={ksana,atb} cache_mode=block_table\n", 100);
    REQUIRE(!refused.has_value());
    CHECK_MESSAGE(refused.error().message.starts_with("line 1: no spec has layout=ksana"), refused.error().message);
}
