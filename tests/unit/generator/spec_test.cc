// The spec's one table: text to values and back, and what each field refuses.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "generator/operator.h"
#include "generator/spec.h"
#include "generator/spec_list.h"

using namespace kvjit::gen;

namespace {

bool same(const KernelSpec& a, const KernelSpec& b) {
    return std::memcmp(&a, &b, sizeof a) == 0;
}

KernelSpec parsed(std::string_view text) {
    const Result<KernelSpec> spec = parse_spec(text);
    REQUIRE_MESSAGE(spec.has_value(), text, ": ", spec.error().message);
    return *spec;
}

/// Legal values of every field, as text; combinations of them may be illegal.
struct Values {
    std::string_view field;
    std::vector<std::string> texts;
};
const std::vector<Values> kValues = {
    {"op", {"KeyValueCache", "MultiHeadAttention", "MultiHeadCacheAttention", "Merge", "Relayout"}},
    {"head_dim", {"8", "40", "64", "128", "512"}},
    {"value_head_dim", {"0", "64", "512"}},
    {"group", {"1", "3", "71", "256"}},
    {"t1", {"f32", "f16", "bf16", "i8"}},
    {"t2", {"auto", "f32", "f16", "bf16", "i8"}},
    {"t3", {"auto", "f32", "f16", "bf16"}},
    {"quant_bit", {"0", "8", "4"}},
    {"quant_group", {"4", "8", "128"}},
    {"cache_mode", {"offset", "token_table", "page_table", "block_table", "block_pointers", "sequence_table"}},
    {"page_size", {"1", "7", "128", "1048576"}},
    {"index_type", {"i64", "i32"}},
    {"starts_type", {"i64", "i32"}},
    {"is_causal", {"0", "1"}},
    {"is_alibi", {"0", "1"}},
    {"has_window", {"0", "1"}},
    {"has_soft_cap", {"0", "1"}},
    {"has_sinks", {"0", "1"}},
    {"attn_mask", {"0", "2", "3"}},
    {"layout",
     {"TL2HD", "L2HTD", "2LHTD", "N2LTHD", "2NTHD", "T2HD", "THD", "NTHD", "NHDTd8", "2HDT", "THD2", "NHTDt8d2"}},
    {"value_layout", {"layout", "HTD", "NHDT", "LTHD", "TDH", "NTHt4D"}},
    {"to_t2", {"same", "auto", "f32", "f16", "bf16", "i8"}},
    {"to_t3", {"same", "auto", "f32", "f16", "bf16"}},
    {"to_quant_bit", {"same", "0", "8", "4"}},
    {"to_quant_group", {"same", "4", "8", "128"}},
    {"to_cache_mode",
     {"same", "offset", "token_table", "page_table", "block_table", "block_pointers", "sequence_table"}},
    {"to_page_size", {"same", "1", "7", "128", "1048576"}},
    {"to_index_type", {"same", "i64", "i32"}},
    {"to_layout", {"same", "TL2HD", "2LHTD", "N2LTHD", "2NTHD", "THD", "NTHD"}},
    {"to_value_layout", {"layout", "HTD", "LTHD"}},
};

/// What the operator has a use for it takes as often as not; the rest, hardly ever.
std::string random_fields(const Operator& op, std::mt19937& random) {
    const std::string taken = " " + std::string(op.fields) + " ";
    std::string text = "op=" + std::string(op.name);
    for (const Values& values : kValues) {
        const bool counts = taken.contains(" " + std::string(values.field) + " ");
        if (values.field == "op" || random() % (counts ? 2 : 60) != 0) continue;
        text += "," + std::string(values.field) + "=" + values.texts[random() % values.texts.size()];
    }
    return text;
}

}  // namespace

TEST_CASE("the table above knows every field") {
    REQUIRE(kValues.size() == spec_fields().size());
    for (const Field& field : spec_fields()) CHECK(std::ranges::count(kValues, field.name, &Values::field) == 1);
}

TEST_CASE("print and parse are inverse over random legal specs") {
    const unsigned seed = 20240117;
    MESSAGE("seed ", seed);
    std::mt19937 random(seed);
    for (const Operator& op : operators()) {
        int legal = 0;
        for (int round = 0; round < 24000; ++round) {
            const std::string text = random_fields(op, random);
            const Result<KernelSpec> spec = parse_spec(text);
            if (!spec) continue;
            ++legal;
            CHECK_MESSAGE(same(parsed(print_spec(*spec)), *spec), text);
        }
        CHECK_MESSAGE(legal > 300, op.name);
    }
}

TEST_CASE("the canonical text omits defaults, so that a new field changes no old text") {
    CHECK(print_spec(default_spec()) == "op=MultiHeadCacheAttention");
    CHECK(print_spec(parsed("layout=L2HTD head_dim=64\n op=KeyValueCache,t1=f16")) ==
          "op=KeyValueCache,head_dim=64,layout=L2HTD");
}

TEST_CASE("values' layout that is the keys' is none of its own, however it was said") {
    for (const char* text : {"layout=THD,value_layout=THD", "value_layout=THD,layout=THD", "layout=THD"}) {
        CAPTURE(text);
        CHECK(print_spec(parsed(text)) == "op=MultiHeadCacheAttention,layout=THD");
        CHECK(same(parsed(text), parsed("layout=THD,value_layout=layout")));
    }
    KernelSpec filled = parsed("layout=THD");
    std::ranges::copy(std::string_view("THD"), filled.value_layout);
    CHECK(validate_spec(filled).has_value());
    CHECK(print_spec(filled) == "op=MultiHeadCacheAttention,layout=THD");
}

TEST_CASE("PMX's layout numbers are those of their revision") {
    const std::pair<const char*, const char*> numbers[] = {{"0", "TL2HD"},    {"2", "L2THD"},    {"3", "L2HTD"},
                                                           {"r1:2", "LHT2D"}, {"r1:3", "2LHTD"}, {"r2:1", "LT2HD"}};
    for (const auto& [number, axes] : numbers) {
        CHECK(layout_axes(parsed(std::string("layout=") + number)) == axes);
    }
}

TEST_CASE("every one of the 24 orders of T, L, 2, H is a layout") {
    std::string axes = "2HLT";
    int orders = 0;
    do {
        CHECK(parse_spec("layout=" + axes + "D").has_value());
        ++orders;
    } while (std::ranges::next_permutation(axes).found);
    CHECK(orders == 24);
}

TEST_CASE("a layout's axes: letters, and the extents of inner parts") {
    const Axes axes = axes_of("N2LHDTt16d128");
    CHECK(axes.order() == "N2LHDTtd");
    CHECK(axes.rank == 8);
    CHECK(axes.find('N') == 0);
    CHECK(axes.find('d') == 7);
    CHECK(axes.extent('d') == 128);
    CHECK(axes.extent('t') == 16);
    CHECK(axes.extent('D') == 0);
    CHECK(axes.extent('2') == 0);
    CHECK(!axes_of("THDd12").has('2'));
    CHECK(axes_of("THDd12").find('2') == -1);
    for (const char* text : {"THDd", "THDd0", "THDd01", "THDd-1", "THDt99999999999", "THDtd8", "ABCDEFGHI"})
        CHECK_MESSAGE(!parse_axes(text), text);
}

TEST_CASE("digits of an inner part are no axis 2") {
    CHECK(is_apart(parsed("layout=THDd32")));
    CHECK(is_apart(parsed("layout=THDd2,value_layout=DTHd2")));
    CHECK(!is_apart(parsed("layout=2THDd32")));
    CHECK(!is_apart(parsed("layout=THD2")));
}

TEST_CASE("what a layout cuts rows and pages into") {
    struct Case {
        const char* text;
        Cut key, value;
    };
    const Case cases[] = {
        {"layout=T2HD", {64, 0}, {64, 0}},
        {"layout=vllm:rocm", {8, 0}, {1, 0}},
        {"cache_mode=block_table,layout=N2THDd64", {64, 0}, {64, 0}},
        {"cache_mode=block_table,layout=NTHt4D,value_layout=NTHDt16d1", {64, 4}, {1, 0}},
        {"cache_mode=block_table,layout=NHTDt1d32", {32, 1}, {32, 1}},
        {"layout=2HTDd2", {2, 0}, {2, 0}},
        {"layout=THD2", {1, 0}, {1, 0}},
    };
    for (const Case& test : cases) {
        CAPTURE(test.text);
        const std::string pages =
            std::string(test.text).contains("N") || std::string(test.text).contains("rocm") ? ",page_size=16" : "";
        const KernelSpec spec = parsed("op=KeyValueCache,head_dim=64," + std::string(test.text) + pages);
        CHECK(cut_of(spec, 0) == test.key);
        CHECK(cut_of(spec, 1) == test.value);
        CHECK(whole(spec) == Cut{64, 0});
    }
}

TEST_CASE("what is refused, and what the error says") {
    struct Case {
        const char* text;
        const char* argument;
        const char* says;
    };
    const Case cases[] = {
        {"head_dim=12", "head_dim", "a multiple of 8 from 8 to 512"},
        {"head_dim=0", "head_dim", "\"0\""},
        {"head_dim=99999999999", "head_dim", "99999999999"},
        {"head_dim=", "head_dim", "it takes"},
        {"group=257", "group", "1 to 256"},
        {"group=-1", "group", "-1"},
        {"colour=red", "colour", "unknown field \"colour\"; the fields are op, "},
        {"head_size=64", "head_size", "unknown field \"head_size\"; did you mean head_dim? The fields are op, "},
        {"head_dim={64,128}", "head_dim", "head_dim is \"{64\"; braces make several specs, in lists of specs alone"},
        {"quant_bit=6", "quant_bit", "0 | 8 | 4"},
        {"quant_bit=8,quant_group=12", "quant_group", "power of two"},
        {"quant_bit=8,quant_group=256", "quant_group", "divides head_dim"},
        {"head_dim=40,quant_bit=8,quant_group=16", "quant_group", "it takes head_dim"},
        {"t1=i8", "t1", "KeyValueCache"},
        {"op=KeyValueCache,t1=i8,quant_bit=8", "quant_bit", "moved"},
        {"op=KeyValueCache,t1=i8,t2=f16", "t2", "i8"},
        {"op=KeyValueCache,t2=i8", "t2", "t1=i8"},
        {"quant_bit=8,t2=f16", "t2", "it takes auto"},
        {"layout=L2TH", "layout", "an order of"},
        {"layout=TTL2HD", "layout", "TTL2HD"},
        {"layout=TLd82HD", "layout", "an order of"},
        {"layout=THDd", "layout", "splits D"},
        {"layout=THDd0", "layout", "splits D"},
        {"layout=TH8D", "layout", "an order of"},
        {"layout=THDd99999999999", "layout", "an order of"},
        {"layout=THDd7", "layout", "the pieces of a split axis D must make up head_dim, which is 128"},
        {"layout=NtH2L16TDd8HT", "layout", "an order of"},
        {"cache_mode=block_table,page_size=8,layout=NH2TDt3", "layout", "must make up page_size, which is 8"},
        {"cache_mode=block_table,layout=NTHD,value_layout=NTHDd3", "layout", "must make up head_dim, which is 128"},
        {"layout=2THd8D", "layout", "an order of"},
        {"layout=2HDd8T", "layout", "are neighbours, so d is the last axis"},
        {"cache_mode=block_table,layout=NHDTd8t4,value_layout=NHTD", "layout", "d is the last axis"},
        {"layout=THD,value_layout=DdT8", "value_layout", "it takes"},
        {"layout=THD,value_layout=HDd8T", "layout", "d is the last axis"},
        {"layout=2THt8D", "layout", "a split axis T is that of blocks of page_size tokens"},
        {"cache_mode=page_table,layout=2THt8D", "layout", "block_table's or block_pointers'"},
        {"cache_mode=sequence_table,layout=NTHt8D,value_layout=NTHD", "layout", "that of blocks"},
        {"quant_bit=8,layout=2HDT", "quant_bit", "scales follow rows in one piece"},
        {"quant_bit=4,cache_mode=block_table,layout=N2THt8D", "quant_bit", "it takes 0"},
        {"quant_bit=8,cache_mode=block_table,layout=NTHD,value_layout=NHDT", "quant_bit", "it takes 0"},
        {"quant_bit=8,layout=vllm:rocm", "quant_bit", "it takes 0"},
        {"layout=TNL2HDtd8", "layout", "an order of"},
        {"layout=2THDd12,value_layout=THD", "value_layout", "layout=2THDd12 has no use for it"},
        {"layout=THDd32,value_layout=2TDHd2", "value_layout", "no axis 2"},
        {"layout=THD,value_layout=T2HD", "value_layout", "no axis 2"},
        {"layout=THD,value_layout=NTHD", "value_layout", "no axis 2, and N and L"},
        {"value_layout=TL2HD", "value_layout", "layout=TL2HD has no use for it; it takes layout"},
        {"value_layout=THD", "value_layout", "layout=TL2HD has no use for it; it takes layout"},
        {"value_head_dim=4", "value_head_dim", "multiple of 8"},
        {"op=KeyValueCache,has_window=1", "has_window", "op=KeyValueCache has no use"},
        {"cache_mode=block_pointers,layout=2LTHD,index_type=i32", "index_type", "cache_mode=block_pointers"},
        {"cache_mode=sequence_table", "layout", "; TL2HD is the default; did you mean layout=N2HTD?"},
        {"layout=N2LTHD", "layout", "and only there; did you mean cache_mode=block_table?"},
        {"cache_mode=block_table", "layout", "; TL2HD is the default; did you mean layout=N2HTD?"},
        {"cache_mode=block_table,layout=L2HTD", "layout", "and only there; did you mean layout=NL2HTD?"},
        {"layout=L2HT", "layout", "it lacks D; it takes an order of"},
        {"layout=2L", "layout", "it lacks T, H, D; it takes an order of"},
        {"cache_mode=block_table,layout=NTHD,value_layout=NTH", "value_layout", "it lacks D; it takes layout, or"},
        {"layout=4", "layout", "0..3"},
        {"page_size=0,cache_mode=page_table", "page_size", "1 to 1048576"},
        {"attn_mask=1", "attn_mask", "0 | 2 | 3"},
        {"op=MultiHeadAttention,quant_bit=8", "quant_bit", "op=MultiHeadAttention has no use for it; it takes 0"},
        {"op=MultiHeadAttention,layout=L2HTD", "layout", "it takes TL2HD"},
        {"op=KeyValueCache,group=4", "group", "op=KeyValueCache has no use for it; it takes 1"},
        {"op=KeyValueCache,is_causal=0", "is_causal", "it takes 1"},
        {"op=Merge,group=2", "group", "op=Merge has no use"},
        {"page_size=64", "page_size", "cache_mode=offset has no use for it; it takes 128"},
        {"cache_mode=token_table,page_size=1", "page_size", "cache_mode=token_table"},
        {"t3=f32", "t3", "quant_bit=0 has no use for it; it takes auto"},
        {"quant_group=16", "quant_group", "quant_bit=0"},
        {"head_dim", "head_dim", "no field=value pair"},
        {"head_dim=64,head_dim=64", "head_dim", "once"},
    };
    for (const Case& misuse : cases) {
        const Result<KernelSpec> spec = parse_spec(misuse.text);
        REQUIRE_MESSAGE(!spec.has_value(), misuse.text);
        CHECK(spec.error().status == KVJIT_BAD_SPEC);
        CHECK(spec.error().argument == misuse.argument);
        CHECK_MESSAGE(spec.error().message.contains(misuse.says), spec.error().message);
        CHECK(spec.error().message.contains(misuse.argument));
    }
}

TEST_CASE("a field that counts for nothing: what to do is said to who wrote a text, and to who filled a struct") {
    const Error written = parse_spec("op=MultiHeadAttention,quant_bit=8").error();
    CHECK_MESSAGE(written.message.ends_with("it takes 0 (leave it out)"), written.message);
    KernelSpec spec = default_spec();
    spec.op = KVJIT_OP_MULTI_HEAD_ATTENTION;
    spec.quant_bit = 8;
    const Error filled = validate_spec(spec).error();
    CHECK_MESSAGE(filled.message.contains("it takes 0 (kvjit_spec_for_op resets"), filled.message);
    const Error listed = parse_spec_list("\nop=MultiHeadAttention quant_bit={0,8}", 10).error();
    CHECK_MESSAGE(listed.message.starts_with("line 2: no spec has quant_bit=8"), listed.message);
    CHECK_MESSAGE(!listed.message.contains("kvjit_spec_for_op"), listed.message);
}

TEST_CASE("values written into the struct are checked like parsed ones") {
    KernelSpec spec = default_spec();
    spec.head_dim = 513;
    CHECK(validate_spec(spec).error().argument == "head_dim");
    CHECK(validate_spec(spec).error().value == 513);
    CHECK(validate_spec(spec).error().limit == 512);
    spec = default_spec();
    spec.op = 77;
    CHECK(validate_spec(spec).error().argument == "op");
    CHECK(validate_spec(spec).error().value == 77);
    spec = default_spec();
    std::memset(spec.layout, 'L', sizeof spec.layout);
    CHECK(validate_spec(spec).error().argument == "layout");
    spec = default_spec();
    std::memset(spec.layout, 0, sizeof spec.layout);
    CHECK(validate_spec(spec).error().message.starts_with("layout is empty; it takes an order of"));
}

TEST_CASE("one spec serves each op, without what means nothing there") {
    const KernelSpec engine = parsed(
        "head_dim=64,group=4,t1=f32,quant_bit=8,quant_group=16,t3=f16,cache_mode=page_table,page_size=16,index_type="
        "i32,"
        "is_causal=0,attn_mask=2,layout=L2HTD");
    const auto text = [&](kvjit_op op) { return print_spec(*spec_for_op(engine, op)); };
    CHECK(text(KVJIT_OP_KEY_VALUE_CACHE) ==
          "op=KeyValueCache,head_dim=64,t1=f32,t3=f16,quant_bit=8,quant_group=16,cache_mode=page_table,page_size=16,"
          "index_type=i32,layout=L2HTD");
    CHECK(text(KVJIT_OP_MULTI_HEAD_ATTENTION) ==
          "op=MultiHeadAttention,head_dim=64,group=4,t1=f32,is_causal=0,attn_mask=2");
    CHECK(same(*spec_for_op(engine, KVJIT_OP_MULTI_HEAD_CACHE_ATTENTION), engine));
    CHECK(text(KVJIT_OP_MERGE) == "op=Merge,head_dim=64,t1=f32");
    CHECK(text(KVJIT_OP_RELAYOUT) ==
          "op=Relayout,head_dim=64,t1=f32,t3=f16,quant_bit=8,quant_group=16,cache_mode=page_table,page_size=16,"
          "index_type=i32,layout=L2HTD");
    CHECK(spec_for_op(engine, static_cast<kvjit_op>(7)).error().argument == "op");
    CHECK(spec_for_op(parsed("op=KeyValueCache,t1=i8"), KVJIT_OP_MERGE).error().argument == "t1");
}

TEST_CASE("whatever a legal spec is made for is legal, and nothing more changes when it is made again") {
    const unsigned seed = 20261122;
    MESSAGE("seed ", seed);
    std::mt19937 random(seed);
    int made = 0;
    for (int round = 0; round < 24000; ++round) {
        const kvjit_op from[] = {KVJIT_OP_MULTI_HEAD_CACHE_ATTENTION, KVJIT_OP_RELAYOUT};
        const std::string text = random_fields(*std::ranges::find(operators(), from[round % 2], &Operator::op), random);
        const Result<KernelSpec> spec = parse_spec(text);
        if (!spec || spec->t1 == KVJIT_I8) continue;  // which not every op takes
        for (const Operator& op : operators()) {
            const Result<KernelSpec> once = spec_for_op(*spec, op.op);
            REQUIRE_MESSAGE(once.has_value(), text);
            CHECK(same(*spec_for_op(*once, op.op), *once));
            ++made;
        }
    }
    CHECK(made > 200);
}
