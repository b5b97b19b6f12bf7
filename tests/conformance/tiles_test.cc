// AMX's programs give the same bits by AMX and by each emulation of its tiles. The targets are the tests' own.
#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "conformance/options.h"
#include "conformance/ragged.h"
#include "conformance/run_call.h"

namespace kvjit::test {
namespace {

/// Compares what a program writes by tiles that are emulated with vectors of AVX2, with those of AVX-512, and by AMX
/// where this machine has it. Sums of bytes have a test of their own in quantised_test.cc.
void compare_tiles(const std::string& spec, NewTokens tokens, kvjit_programs program) {
    static std::set<std::string> told;
    CAPTURE(spec);
    Case which = ragged(spec);
    which.num_kv_heads = 1;
    which.new_tokens = tokens;
    const std::vector<std::byte> expected = output_on("x86-64-v3+amx-emulated", program, "amx", which);
    for (const std::string name : {"x86-64-v4+amx-emulated", "x86-64-v4-amx"}) {
        CAPTURE(name);
        const std::vector<std::byte> output = output_on(name.c_str(), program, "amx", which);
        const bool runs = !expected.empty() && !output.empty();
        if (runs)
            CHECK(output == expected);
        else if (told.insert(name).second)
            MESSAGE("SKIP in part: this machine lacks AVX2 or what " << name << " takes");
    }
}

// No sequence is decoded without tiles, whose sums depend on the vectors: all have 7 tokens or more.
TEST_CASE("prefill by tiles has the same bits whatever stands for them") {
    if (options().target != "host") return;  // once is enough
    for (const std::string spec :
         {"op=MultiHeadAttention,head_dim=128,group=4,t1=bf16,is_causal=1",
          "op=MultiHeadAttention,head_dim=40,group=8,t1=f16,attn_mask=3",
          "op=MultiHeadCacheAttention,head_dim=64,group=7,t1=bf16,has_window=1,has_soft_cap=1,layout=TL2HD,"
          "cache_mode=page_table,page_size=5",
          "op=MultiHeadCacheAttention,head_dim=256,group=4,t1=f16,is_alibi=1,layout=L2HTD",
          "op=MultiHeadCacheAttention,head_dim=96,group=6,t1=f16,quant_bit=8,quant_group=8,cache_mode=token_table",
          "op=MultiHeadCacheAttention,head_dim=128,group=4,t1=bf16,quant_bit=4,quant_group=16,layout=N2LTHD,"
          "cache_mode=block_table,page_size=16"})
        compare_tiles(spec, NewTokens::kTileEdge, KVJIT_PROGRAM_PREFILL);
}

TEST_CASE("decode of bfloat16 by tiles has the same bits whatever stands for them") {
    if (options().target != "host") return;  // once is enough
    const std::string common = "op=MultiHeadCacheAttention,t1=bf16,t2=bf16,layout=L2HTD,";
    for (const std::string spec :
         {"head_dim=128,group=4,cache_mode=page_table,page_size=128",
          "head_dim=96,group=3,cache_mode=token_table,has_window=1", "head_dim=512,group=8,attn_mask=3",
          "head_dim=32,group=1,is_alibi=1,has_soft_cap=1"}) {
        compare_tiles(common + spec, NewTokens::kOne, KVJIT_PROGRAM_DECODE);
        compare_tiles(common + spec, NewTokens::kTwoOrThree, KVJIT_PROGRAM_DECODE);
    }
}

}  // namespace
}  // namespace kvjit::test
