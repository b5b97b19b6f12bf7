#include "conformance/ragged.h"

#include <doctest/doctest.h>

#include "conformance/judge.h"
#include "conformance/options.h"
#include "conformance/run_call.h"

namespace kvjit::test {

kvjit_spec spec_of(const std::string& text) {
    kvjit_spec spec;
    kvjit_error error;
    kvjit_error_init(&error);
    REQUIRE_MESSAGE(kvjit_spec_parse(text.c_str(), &spec, &error) == KVJIT_OK, error.message);
    return spec;
}

Case ragged(const std::string& spec) {
    Case which;
    which.spec = spec_of(spec);
    which.num_kv_heads = 2;
    which.batch_size = 5;
    which.new_tokens = NewTokens::kRagged;
    which.past_tokens = PastTokens::kRagged;
    if (which.spec.has_window != 0) which.window_left = 37, which.window_right = 2;
    return which;
}

Call ran(const Case& which, std::uint64_t data_seed, std::uint64_t placement_seed) {
    Call call = make_call(which, data_seed, placement_seed);
    REQUIRE(run_call(call) == "");
    return call;
}

void check_against_oracle(Call& call) {
    INFO(describe(call));
    call.remember();
    REQUIRE(run_call(call) == "");
    CHECK(judge(call) == "");
}

void check_drawn(const Call& call, const std::string& which) {
    std::string wrong = run_call(call);
    if (wrong.empty()) wrong = judge(call);
    CHECK_MESSAGE(wrong.empty(), wrong << "\n    " << describe(call) << "\n    reproduce: kvjit_conformance --seed "
                                       << options().seed << " --strength " << options().strength << " --target "
                                       << options().target << " " << which);
}

Call check_against_oracle(const Case& which, std::uint64_t data_seed, std::uint64_t placement_seed) {
    INFO("data seed " << data_seed << ", placement seed " << placement_seed);
    Call call = make_call(which, data_seed, placement_seed);
    check_against_oracle(call);
    return call;
}

std::uint64_t find_seed(std::uint64_t first, const std::function<bool(std::uint64_t seed)>& fits) {
    for (std::uint64_t seed = first; seed < first + kSeedTries; ++seed) {
        if (fits(seed)) return seed;
    }
    FAIL("no seed from ", first, " to ", first + kSeedTries - 1,
         " gives a call with the property that this test needs");
    return first;  // which is not reached: FAIL throws
}

const std::vector<std::string>& attention_specs() {
    static const std::vector<std::string> specs = {
        "op=MultiHeadCacheAttention,head_dim=64,group=4,t1=f16,cache_mode=page_table,page_size=16,layout=L2HTD",
        "op=MultiHeadCacheAttention,head_dim=128,group=1,t1=f32,cache_mode=token_table,layout=TL2HD,is_alibi=1",
        ("op=MultiHeadCacheAttention,head_dim=80,group=7,t1=f16,quant_bit=8,quant_group=16,cache_mode=block_table,"
         "page_size=7,layout=N2LTHD"),
        ("op=MultiHeadCacheAttention,head_dim=40,group=3,t1=f32,quant_bit=4,quant_group=8,cache_mode=offset,layout="
         "L2THD"),
        "op=MultiHeadAttention,head_dim=96,group=2,t1=f32,attn_mask=2",
        ("op=MultiHeadCacheAttention,head_dim=64,group=8,t1=f16,cache_mode=page_table,page_size=4,layout=L2HTD,"
         "has_window=1,has_sinks=1"),
        "op=MultiHeadAttention,head_dim=128,group=2,t1=f32,is_causal=0,has_window=1,has_soft_cap=1",
        ("op=MultiHeadCacheAttention,head_dim=128,group=4,t1=f16,quant_bit=8,quant_group=32,cache_mode=page_table,"
         "page_size=16,layout=L2HTD,has_window=1"),
        ("op=MultiHeadCacheAttention,head_dim=96,group=2,t1=bf16,cache_mode=page_table,page_size=16,layout=L2HTD,"
         "has_window=1,attn_mask=2"),
        ("op=MultiHeadCacheAttention,head_dim=64,group=6,t1=bf16,quant_bit=4,quant_group=32,t3=bf16,cache_mode=offset,"
         "layout=TL2HD,attn_mask=3")};
    return specs;
}

std::set<std::string> spec_fields() {
    std::set<std::string> fields;
    kvjit_spec_fields([](void* names, const char* name, const char*, const char*,
                         const char*) { static_cast<std::set<std::string>*>(names)->insert(name); },
                      &fields);
    return fields;
}

std::string value_of(const std::string& text, const std::string& field) {
    const std::string padded = "," + text + ",", lead = "," + field + "=";
    const std::size_t at = padded.find(lead);
    if (at == std::string::npos) return "";
    return padded.substr(at + lead.size(), padded.find(',', at + lead.size()) - at - lead.size());
}

}  // namespace kvjit::test
