// Relayout's spec: two caches in one, made of two specs or of text, and the one program that serves them.
#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "generator/layouts.h"
#include "generator/operator.h"
#include "generator/spec_list.h"
#include "lowered.h"

using namespace kvjit::gen;

namespace {

bool same(const KernelSpec& a, const KernelSpec& b) {
    return std::memcmp(&a, &b, sizeof a) == 0;
}

KernelSpec made(const std::string& from, const std::string& to) {
    const Result<KernelSpec> spec = relayout_spec(spec_of(from), spec_of(to));
    REQUIRE_MESSAGE(spec.has_value(), from, " -> ", to, ": ", spec.error().message);
    return *spec;
}

/// What a cache of the spec is, in words of its own.
std::string cache_of(const KernelSpec& spec) {
    const bool paged = spec.cache_mode == KVJIT_PAGE_TABLE || spec.cache_mode == KVJIT_BLOCK_TABLE ||
                       spec.cache_mode == KVJIT_BLOCK_POINTERS;
    const std::string layout = spec.layout;
    const bool apart = !layout.contains('2') && spec.value_layout[0] != '\0';
    std::string text = "D" + std::to_string(spec.head_dim) + " mode " + std::to_string(spec.cache_mode) + " index " +
                       std::to_string(spec.index_type) + " starts " + std::to_string(spec.starts_type) + " " + layout +
                       "/" + (apart ? std::string(spec.value_layout) : layout);
    if (paged) text += " pages " + std::to_string(spec.page_size);
    if (spec.quant_bit == 0) return text + " type " + std::to_string(spec.t2 == KVJIT_AUTO ? spec.t1 : spec.t2);
    return text + " bits " + std::to_string(spec.quant_bit) + " group " + std::to_string(spec.quant_group) +
           " scales " + std::to_string(spec.t3 == KVJIT_AUTO ? spec.t1 : spec.t3);
}

/// The text of a relayout between two caches by their names.
std::string by_names(std::string_view from, std::string_view to) {
    return "op=Relayout,layout=" + std::string(from) + ",to_layout=" + std::string(to);
}

const std::vector<std::string> kTypes = {"t1=f16",
                                         "t1=f32",
                                         "t1=bf16",
                                         "t1=f16,t2=f32",
                                         "t1=f16,quant_bit=8",
                                         "t1=f16,quant_bit=8,quant_group=16,t3=f32",
                                         "t1=f32,quant_bit=4,t3=f16",
                                         "t1=f32,quant_bit=4,quant_group=64"};
const std::vector<std::string> kPlaces = {"layout=TL2HD",
                                          "layout=LTHD,value_layout=HTLD,index_type=i32",
                                          "layout=THD,cache_mode=token_table",
                                          "layout=L2HTD,cache_mode=page_table,page_size=16",
                                          "layout=L2HTD,cache_mode=page_table,index_type=i32",
                                          "layout=NTHD,value_layout=NHTD,cache_mode=block_table,page_size=16",
                                          "layout=2LTHD,cache_mode=block_pointers,page_size=64",
                                          "layout=NL2THD,cache_mode=sequence_table,index_type=i32"};

std::vector<std::string> caches(const std::string& op) {
    std::vector<std::string> all;
    for (const std::string& types : kTypes) {
        for (const std::string& place : kPlaces) all.push_back("op=" + op + ",head_dim=64," + types + "," + place);
    }
    return all;
}

}  // namespace

TEST_CASE("a relayout's spec says what both specs say of their caches, and its text says it again") {
    for (const std::string& from : caches("KeyValueCache")) {
        for (const std::string& to : caches("MultiHeadCacheAttention")) {
            const KernelSpec spec = made(from, to);
            CAPTURE(print_spec(spec));
            const KernelSpec a = spec_of(from), b = spec_of(to);
            CHECK(cache_of(source_of(spec)) == cache_of(a));
            CHECK(cache_of(destination_of(spec)) == cache_of(b));
            const std::set<std::int32_t> types = {a.t1, a.t2, b.t1, b.t2};
            const bool wide = types.contains(KVJIT_F32) || (types.contains(KVJIT_F16) && types.contains(KVJIT_BF16));
            CHECK(spec.t1 == (wide ? std::int32_t{KVJIT_F32} : a.t1));
            CHECK(same(spec_of(print_spec(spec)), spec));
            CHECK(same(*spec_for_op(spec, KVJIT_OP_RELAYOUT), spec));
        }
    }
}

TEST_CASE("what a relayout's two caches have alike, its text says once") {
    CHECK(print_spec(made("op=KeyValueCache", "op=KeyValueCache")) == "op=Relayout,t2=f16");
    CHECK(print_spec(made("op=KeyValueCache,t1=f32,quant_bit=8,cache_mode=page_table",
                          "op=KeyValueCache,t1=f32,quant_bit=8,cache_mode=page_table,page_size=16")) ==
          "op=Relayout,t1=f32,t3=f32,quant_bit=8,cache_mode=page_table,to_page_size=16");
    CHECK(print_spec(made("op=KeyValueCache,cache_mode=page_table,page_size=16,layout=THD",
                          "op=KeyValueCache,layout=THD,value_layout=THD")) ==
          "op=Relayout,t2=f16,cache_mode=page_table,page_size=16,layout=THD,to_cache_mode=offset");
}

TEST_CASE("a relayout between all names of layouts is what the names say") {
    for (const NamedLayout& from : kNamedLayouts) {
        for (const NamedLayout& to : kNamedLayouts) {
            CAPTURE(from.name);
            CAPTURE(to.name);
            const auto text = [](const NamedLayout& named) {
                return "op=KeyValueCache,layout=" + std::string(named.name);
            };
            // A mode that the source's name sets stands for a destination whose name leaves it open.
            if (!to.sets.contains("cache_mode") && from.sets.contains("cache_mode")) continue;
            const KernelSpec named = spec_of(by_names(from.name, to.name));
            CHECK(cache_of(destination_of(named)).substr(0, cache_of(destination_of(named)).find(" pages")) ==
                  cache_of(spec_of(text(to))).substr(0, cache_of(spec_of(text(to))).find(" pages")));
            CHECK(cache_of(source_of(named)) == cache_of(spec_of(text(from))));
        }
    }
}

TEST_CASE("what a relayout refuses names the field, that of the destination with to_") {
    struct Case {
        std::string text, argument, says;
        std::int64_t value = 0, limit = 0;
    };
    const Case cases[] = {
        {"quant_bit=8,quant_group=12", "quant_group", "power of two", 12, 128},
        {"to_quant_bit=8,to_quant_group=12", "to_quant_group", "divides head_dim, which is 128", 12, 128},
        {"quant_bit=8,to_quant_group=256", "to_quant_group", "it takes head_dim", 256, 128},
        {"to_quant_bit=3", "to_quant_bit", "same | 0 | 8 | 4", 3},
        {"to_t2=i8", "to_t2", "only with it"},
        {"t1=i8,to_t2=f16", "to_t2", "only with it"},
        {"t1=i8,to_quant_bit=8", "to_quant_bit", "it takes 0", 8},
        {"to_quant_bit=8,to_t2=f16", "to_t2", "it takes auto"},
        {"to_t3=f32", "to_t3", "to_quant_bit=same has no use for it; it takes same"},
        {"quant_bit=8,to_quant_bit=0,to_quant_group=8", "to_quant_group", "to_quant_bit=0 has no use", 8},
        {"to_page_size=16", "to_page_size", "to_cache_mode=same has no use for it; it takes same", 16},
        {"to_cache_mode=page_table,to_page_size=0", "to_page_size", "1 to 1048576", 0, 1},
        {"to_cache_mode=page_table,to_page_size=-1", "to_page_size", "1 to 1048576", -1, 1},
        {"to_cache_mode=block_table", "to_layout", "axis N stands"},
        {"to_cache_mode=block_table", "to_layout", "and only there; did you mean to_layout=N2HTD?"},
        {"to_layout=N2THD", "to_layout", "and only there; did you mean to_cache_mode=block_table?"},
        {"cache_mode=block_table,layout=N2THD,to_cache_mode=offset", "to_layout", "axis N stands"},
        {"cache_mode=block_table,to_cache_mode=block_table,to_layout=N2THD", "layout", "axis N stands"},
        {"to_cache_mode=block_pointers,to_layout=THD", "to_layout", "axis 2 stands in it"},
        {"to_cache_mode=block_pointers,to_layout=2THD,to_index_type=i32", "to_index_type", "block_pointers"},
        {"to_layout=THD,to_value_layout=T2HD", "to_value_layout", "no axis 2"},
        {"to_layout=THD,to_value_layout=LTHD", "to_value_layout", "L where layout has"},
        {"to_value_layout=THD", "to_value_layout", "to_layout=same has no use for it"},
        {"to_layout=T2HD,to_value_layout=THD", "to_value_layout", "no use"},
        {"to_layout=TTHD", "to_layout", "TTHD"},
        {"to_layout=NN", "to_layout", "it takes same, or what layout takes"},
        {"to_layout=vllm", "to_layout", "of vllm it takes vllm:LBNHC, vllm:LBHNC"},
        {"to_layout=THDd7", "to_layout", "head_dim, which is 128", 0, 128},
        {"group=4", "group", "op=Relayout has no use for it; it takes 1", 4, 1},
        {"is_causal=0", "is_causal", "op=Relayout has no use", 0, 1},
        {"value_head_dim=64", "value_head_dim", "op=Relayout has no use", 64},
        {"to_layout=vllm:gpu,to_cache_mode=page_table", "to_cache_mode",
         "to_layout=vllm:gpu sets it to block_table; leave it out, or give the order alone, to_layout=2NTHD"},
        {"to_page_size=16,to_layout=sglang", "to_page_size", "to_layout=sglang sets it to 1", 16, 1},
        {"to_layout=atb,to_value_layout=NHTD", "to_value_layout", "to_layout=atb sets it to layout"},
        {"to_head_dim=64", "to_head_dim", "unknown field"},
        {"to_layout=THD,to_layout=THD", "to_layout", "once"},
    };
    for (const Case& misuse : cases) {
        const Result<KernelSpec> spec = parse_spec("op=Relayout," + misuse.text);
        REQUIRE_MESSAGE(!spec.has_value(), misuse.text);
        CAPTURE(spec.error().message);
        CHECK(spec.error().status == KVJIT_BAD_SPEC);
        CHECK(spec.error().argument == misuse.argument);
        CHECK(spec.error().message.contains(misuse.says));
        CHECK(spec.error().message.starts_with(misuse.argument == "to_head_dim" ? "unknown" : misuse.argument));
        CHECK(spec.error().value == misuse.value);
        CHECK(spec.error().limit == misuse.limit);
    }
}

TEST_CASE("fields of a relayout's destination mean nothing to other operators") {
    for (const Operator& op : operators()) {
        if (op.op == KVJIT_OP_RELAYOUT) continue;
        for (const char* field : {"to_t2=f32", "to_quant_bit=8", "to_cache_mode=offset", "to_layout=THD"}) {
            const Result<KernelSpec> spec = parse_spec("op=" + std::string(op.name) + "," + field);
            REQUIRE_MESSAGE(!spec.has_value(), field);
            CHECK_MESSAGE(spec.error().message.contains("has no use for it; it takes same"), spec.error().message);
        }
    }
}

TEST_CASE("lists of specs take relayouts") {
    const Result<SpecList> list = parse_spec_list(
        "op=Relayout head_dim=64 layout={vllm:gpu,ksana} to_layout={ksana,pmx:r1:2} to_cache_mode=block_pointers\n",
        10);
    REQUIRE_MESSAGE(list.has_value(), list.error().message);
    CHECK(list->specs.size() == 4);
}

TEST_CASE("one program serves relayouts of all layouts and modes; types and groups make others") {
    const auto identity = [](const std::string& text) {
        const Target target = *named_target("x86-64-v3");
        return identity_text(lowered("op=Relayout," + text, target).front(), target);
    };
    const std::string base = identity("head_dim=64");
    for (const NamedLayout& from : kNamedLayouts) {
        for (const NamedLayout& to : kNamedLayouts) {
            if (from.name == "vllm:rocm" || to.name == "vllm:rocm") continue;
            if (!to.sets.contains("cache_mode") && from.sets.contains("cache_mode")) continue;
            CHECK_MESSAGE(identity("head_dim=64," + by_names(from.name, to.name).substr(12)) == base, from.name,
                          to.name);
        }
    }
    for (const char* alike : {"starts_type=i32", "index_type=i32", "to_index_type=i32", "t2=f16", "t2=f16,to_t2=auto",
                              "cache_mode=page_table,page_size=3", "to_cache_mode=page_table,to_page_size=1"})
        CHECK_MESSAGE(identity("head_dim=64," + std::string(alike)) == base, alike);
    std::set<std::string> others = {base};
    for (const char* other : {"head_dim=128", "head_dim=64,t1=f32", "head_dim=64,t2=f32", "head_dim=64,to_t2=f32",
                              "head_dim=64,quant_bit=8", "head_dim=64,to_quant_bit=8", "head_dim=64,to_quant_bit=4",
                              "head_dim=64,to_quant_bit=8,to_quant_group=16", "head_dim=64,to_quant_bit=8,to_t3=f32",
                              "head_dim=64,quant_bit=8,to_quant_bit=4", "head_dim=64,quant_bit=8,to_quant_group=32",
                              "head_dim=64,quant_bit=8,to_t3=f32", "head_dim=64,t1=i8"})
        CHECK_MESSAGE(others.insert(identity(other)).second, other);
}
