// Lowering and identity: whatever changes the code changes the identity, and nothing else does.
#include <doctest/doctest.h>

#include <map>
#include <set>

#include "generator/operator.h"
#include "generator/render.h"
#include "lowered.h"

using namespace kvjit::gen;

namespace {

const Target& v3() {
    static const Target target = *named_target("x86-64-v3");
    return target;
}

std::map<std::string, std::string> identities(std::string_view text) {
    std::map<std::string, std::string> found;
    for (const Program& program : lowered(text, v3())) {
        found[std::string(program.info->name)] = identity_text(program, v3());
    }
    return found;
}

using Names = std::set<std::string>;

/// Names of the programs whose identity differs.
Names changed(std::string_view before, std::string_view after) {
    const auto a = identities(before);
    const auto b = identities(after);
    Names names;
    for (const auto& [name, identity] : a) {
        if (!b.contains(name) || b.at(name) != identity) names.insert(name);
    }
    return names;
}

const Names kAll = {"store", "attend_decode", "attend_prefill", "merge"};
const Names kCache = {"store", "attend_decode", "attend_prefill"};
const Names kAttend = {"attend_decode", "attend_prefill"};
const std::string kBase = "cache_mode=page_table,quant_bit=8,quant_group=16,t3=f32,layout=L2HTD";

}  // namespace

TEST_CASE("each op has its programs on each backend, in the order in which a call runs them") {
    struct Case {
        std::string_view op;
        std::vector<std::string_view> cpu, cuda;
    };
    const Case cases[] = {
        {"KeyValueCache", {"store", "load"}, {"check", "store", "load"}},
        {"MultiHeadAttention",
         {"attend_decode", "attend_prefill", "merge"},
         {"check", "attend_decode", "attend_prefill"}},
        {"MultiHeadCacheAttention",
         {"store", "attend_decode", "attend_prefill", "merge"},
         {"check", "store", "attend_decode", "attend_prefill"}},
        {"Merge", {"merge"}, {"merge"}},
        {"Relayout", {"relayout"}, {"relayout"}},
    };
    const auto names = [](std::string_view op, const Target& target) {
        std::vector<std::string_view> found;
        for (const Program& program : lowered("op=" + std::string(op), target)) found.push_back(program.info->name);
        return found;
    };
    for (const Case& test : cases) {
        CAPTURE(test.op);
        CHECK(names(test.op, v3()) == test.cpu);
        CHECK(names(test.op, *named_target("sm_80")) == test.cuda);
        CHECK(names(test.op, emulated_target(v3())) == test.cuda);
    }
    CHECK(std::size(cases) == operators().size());
}

TEST_CASE("perturbing a field gives another identity wherever the code differs") {
    struct Case {
        std::string change;
        Names programs;
    };
    const Case cases[] = {
        {"head_dim=64", kAll},
        {"group=4", kAttend},
        {"t1=f32", kAll},
        {"page_size=64", kCache},
        {"index_type=i32", kCache},
        {"is_causal=0", kAttend},
        {"is_alibi=1", kAttend},
        {"attn_mask=2", kAttend},
        {"attn_mask=3", kAttend},
        {"has_window=1", kAttend},
        {"has_soft_cap=1", kAttend},
        {"has_sinks=1", {"attend_decode", "attend_prefill", "merge"}},
    };
    std::set<std::string_view> fields = {"op", "t2", "t3", "quant_bit", "quant_group", "cache_mode", "layout"};
    // Below; or of no program yet, see variant_test.cc.
    fields.insert({"starts_type", "value_head_dim", "value_layout"});
    for (const Case& test : cases) {
        CHECK_MESSAGE(changed(kBase, kBase + "," + test.change) == test.programs, test.change);
        fields.insert(std::string_view(test.change).substr(0, test.change.find('=')));
    }
    for (const Field& field : spec_fields())  // a relayout's: see relayout_spec_test.cc
        CHECK_MESSAGE((fields.contains(field.name) || field.name.starts_with("to_")), field.name);
}

TEST_CASE("the width of starts is code where packed keys have them for a table, and nowhere else") {
    CHECK(changed(kBase, kBase + ",starts_type=i32").empty());
    CHECK(changed("op=MultiHeadAttention", "op=MultiHeadAttention,starts_type=i32") == kAttend);
    CHECK(changed("op=Merge", "op=Merge,starts_type=i32").empty());
}

TEST_CASE("perturbing what the base already sets") {
    const std::string paged = "cache_mode=page_table,layout=L2HTD";
    CHECK(changed(paged, paged + ",t2=f32") == kCache);
    CHECK(changed(paged, paged + ",quant_bit=8") == kCache);
    CHECK(changed(paged + ",quant_bit=8", paged + ",quant_bit=4") == kCache);
    CHECK(changed(paged + ",quant_bit=8", paged + ",quant_bit=8,quant_group=16") == kCache);
    CHECK(changed(paged + ",quant_bit=8", paged + ",quant_bit=8,t3=f32") == kCache);
    CHECK(changed("layout=L2HTD", "cache_mode=token_table,layout=L2HTD") == kCache);
    CHECK(changed("layout=L2HTD", paged) == kCache);
    CHECK(changed("layout=L2HTD", "layout=L2THD") == kCache);
    CHECK(changed("op=MultiHeadAttention", "op=Merge").contains("merge"));
}

TEST_CASE("how rows and pages are cut is code of what stores and loads, where a layout cuts them") {
    const std::string blocks = "op=KeyValueCache,head_dim=64,cache_mode=block_table,page_size=16,layout=";
    const Names both = {"store", "load"};
    CHECK(changed(blocks + "NHTD", blocks + "NHDTd8") == both);
    CHECK(changed(blocks + "NHDTd8", blocks + "NHDTd16") == both);
    CHECK(changed(blocks + "NHTD", blocks + "NHDT") == both);
    CHECK(changed(blocks + "NHTD", blocks + "NHTt4D") == both);
    CHECK(changed(blocks + "NHTD", blocks + "NHTD,value_layout=NHDT") == both);
    CHECK(changed(blocks + "NHTt4D", blocks + "NHTD,value_layout=NHTt4D") == both);
    CHECK(changed(blocks + "NHDT", blocks + "DHNT").empty());
    CHECK(changed(blocks + "NHDTd8", blocks + "N2LHDTd8").empty());
    CHECK(changed(blocks + "NHTD", blocks + "NHDTd64").empty());
    CHECK(changed(blocks + "NHTD", blocks + "NHTt16D,value_layout=NHDTd64").empty());
    CHECK(!identities(blocks + "NHTD").at("store").contains("Piece"));
    CHECK(identities(blocks + "NHDTd8,value_layout=NHTDt4d1")
              .at("store")
              .contains(";kKeyPiece=8;kValuePiece=1;kKeyTokenPiece=0;kValueTokenPiece=4;"));
}

TEST_CASE("layouts, modes and spellings that lower alike share their binaries") {
    CHECK(changed("layout=TL2HD", "layout=LT2HD").empty());
    CHECK(changed("layout=TL2HD", "layout=L2THD").empty());
    CHECK(changed("layout=L2HTD", "layout=2LHTD").empty());
    CHECK(changed("cache_mode=page_table,layout=L2THD", "cache_mode=block_table,layout=N2LTHD").empty());
    CHECK(changed("cache_mode=page_table,page_size=1", "cache_mode=token_table").empty());
    CHECK(changed("t2=f16", "t2=auto").empty());
    CHECK(changed("is_alibi=1,is_causal=0", "is_alibi=1,is_causal=1").empty());
    CHECK(changed("op=MultiHeadAttention", "layout=L2THD") == Names{});
}

TEST_CASE("equal identities render to equal sources, different ones to different sources") {
    std::map<std::string, std::string> by_identity;
    std::set<std::string> sources;
    for (const char* text : {"layout=TL2HD", "layout=L2HTD", "op=KeyValueCache", "op=MultiHeadAttention,group=4",
                             "quant_bit=8", "quant_bit=4,layout=LT2HD", "op=Merge", "is_alibi=1"}) {
        for (const Program& program : lowered(text, v3())) {
            const Result<std::string> source = render(program, v3(), embedded_templates());
            REQUIRE_MESSAGE(source.has_value(), source.error().message);
            const auto [it, added] = by_identity.emplace(identity_text(program, v3()), *source);
            CHECK(it->second == *source);
            CHECK(sources.insert(*source).second == added);
        }
    }
}

TEST_CASE("the target is part of the identity") {
    const Program program = lowered("op=Merge", v3()).front();
    std::set<std::string> found;
    for (const std::string_view name : x86_levels()) {
        const Result<Target> target = named_target(name);
        REQUIRE(target.has_value());
        found.insert(identity_text(program, *target));
    }
    CHECK(found.size() == x86_levels().size());
    CHECK(v3().has("avx2"));
    CHECK(!v3().has("avx512f"));
    CHECK(v3().vector_bytes() == 32);
    CHECK(v3().text() == "x86_64-unknown-linux-gnu:x86-64-v3");
    CHECK(named_target("native").error().status == KVJIT_BAD_TARGET);
}
