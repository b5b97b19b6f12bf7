// Variants: which algorithm serves what, and what its choice changes.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "generator/decode_tokens.h"
#include "generator/render.h"
#include "lowered.h"

using namespace kvjit::gen;

namespace {

Target target_of(std::string_view name) {
    return name == "cuda-emulated" ? emulated_target(*named_target("x86-64-v3")) : *named_target(name);
}

std::string chosen(kvjit_programs program, std::string_view spec, std::string_view target) {
    const auto info = std::ranges::find(programs(), program, &ProgramInfo::bit);
    const Result<const Variant*> variant = choose_variant(*info, spec_of(spec), target_of(target));
    return variant ? std::string((*variant)->name) : variant.error().message;
}

constexpr auto kDecode = KVJIT_PROGRAM_DECODE;
constexpr auto kPrefill = KVJIT_PROGRAM_PREFILL;
const std::string kPlain = "head_dim=64,group=4";

/// Each program that the backends have for any op, lowered.
std::vector<Program> all_programs(const Target& target) {
    std::vector<Program> programs;
    for (const char* op : {"op=KeyValueCache", "op=MultiHeadCacheAttention,group=4", "op=MultiHeadAttention,t1=f32"}) {
        for (Program& program : lowered(op, target)) programs.push_back(std::move(program));
    }
    return programs;
}

}  // namespace

TEST_CASE("tensor cores take float16 and what is narrower, dot products the rest") {
    for (const char* target : {"sm_80", "sm_90", "sm_100a", "cuda-emulated"}) {
        CAPTURE(target);
        CHECK(chosen(kDecode, kPlain, target) == "mma");
        CHECK(chosen(kDecode, kPlain + ",quant_bit=8", target) == "mma");
        CHECK(chosen(kDecode, kPlain + ",quant_bit=4", target) == "mma");
        CHECK(chosen(kDecode, kPlain + ",t1=f32", target) == "dot");
        CHECK(chosen(kDecode, kPlain + ",t1=f32,quant_bit=8,t3=f32", target) == "dot");
        CHECK(chosen(kDecode, kPlain + ",t2=f32", target) == "dot");
        CHECK(chosen(kDecode, "head_dim=64,group=1", target) == "mma");
        CHECK(chosen(kPrefill, "head_dim=64,group=1", target) == "mma");
        CHECK(chosen(kPrefill, kPlain + ",t1=f32", target) == "dot");
        CHECK(chosen(kPrefill, "op=MultiHeadAttention," + kPlain, target) == "mma");
    }
    CHECK(chosen(kDecode, kPlain, "x86-64-v3") == "simd");
}

TEST_CASE("warpgroups prefill what they can, where the target has them") {
    const std::string target = "sm_90a";
    for (const char* spec : {"head_dim=64,group=1", "head_dim=128,group=4,t1=bf16,t2=bf16", "head_dim=192,group=8",
                             "op=MultiHeadAttention,head_dim=256,group=4,is_causal=1,has_window=1,has_soft_cap=1"}) {
        CAPTURE(spec);
        CHECK(chosen(kPrefill, spec, target) == "wgmma");
        CHECK(chosen(kPrefill, spec, "sm_90") == "mma");
        CHECK(chosen(kPrefill, spec, "sm_100a") == "mma");
        CHECK(chosen(kDecode, spec, target) == "mma");
    }
    CHECK(chosen(kPrefill, kPlain + ",quant_bit=8", target) == "mma");
    CHECK(chosen(kPrefill, kPlain + ",attn_mask=2", target) == "mma");
    CHECK(chosen(kPrefill, "head_dim=80,group=4", target) == "mma");
    CHECK(chosen(kPrefill, kPlain + ",t1=f32", target) == "dot");
    CHECK(chosen(kPrefill, kPlain + ",t2=f32", target) == "dot");
    const std::string declined = explain(spec_of(kPlain + ",quant_bit=8"), target_of(target), kPrefill);
    CHECK(declined.contains("wgmma (cuda/attend_prefill_wgmma.cu) declines: quant_bit is 8; "));
    const auto shape = lowered(kPlain, target_of(target)).back().launch;
    CHECK(shape.threads == 256);
    CHECK(shape.rows == 128);
    CHECK(shape.shared_bytes <= max_shared_bytes(target_of(target)));
    CHECK(lowered("head_dim=256,group=4", target_of(target)).back().launch.shared_bytes <= 227 * 1024);
}

TEST_CASE("the emulation's programs that use no warpgroups are the same with and without them") {
    const Target plain = emulated_target(target_of("x86-64-v3"));
    Target hopper = plain;
    hopper.wgmma = true;
    for (const Program& program : lowered(kPlain, hopper)) {
        const std::string own = identity_text(program, hopper);
        bool is_shared = false;
        for (const Program& other : lowered(kPlain, plain)) is_shared = is_shared || identity_text(other, plain) == own;
        CHECK(is_shared == (program.info->bit != kPrefill));
    }
}

TEST_CASE("AMX prefills what has 16 bits or codes, where the target has it with AVX-512, or emulates it") {
    for (const char* target : {"x86-64-v4-amx", "x86-64-v3+amx-emulated", "x86-64-v4-bf16+sse4a+amx-emulated"}) {
        CAPTURE(target);
        CHECK(chosen(kPrefill, kPlain, target) == "amx");
        CHECK(chosen(kPrefill, kPlain + ",t1=bf16,t2=bf16", target) == "amx");
        CHECK(chosen(kPrefill, kPlain + ",t1=bf16,t2=f16", target) == "amx");
        CHECK(chosen(kPrefill, kPlain + ",quant_bit=8", target) == "amx");
        CHECK(chosen(kPrefill, kPlain + ",t1=bf16,quant_bit=4,t3=f32", target) == "amx");
        CHECK(chosen(kPrefill, "op=MultiHeadAttention,head_dim=40,group=3", target) == "amx");
        CHECK(chosen(kPrefill, kPlain + ",t1=f32", target) == "simd");
        CHECK(chosen(kPrefill, kPlain + ",t2=f32", target) == "simd");
        CHECK(chosen(kPrefill, "op=MultiHeadAttention,t1=f32", target) == "simd");
        CHECK(chosen(kDecode, kPlain, target) == "simd");
    }
    for (const char* target : {"x86-64-v4-fp16", "x86-64-v3+amx-tile+amx-bf16", "x86-64-v4-fp16+amx-tile+amx-int8"})
        CHECK(chosen(kPrefill, kPlain, target) == "simd");
    for (const Program& program : lowered(kPlain, target_of("x86-64-v4-amx")))
        CHECK(program.uses_tiles == (program.info->bit == kPrefill));
    for (const Program& program : lowered(kPlain, target_of("x86-64-v4-amx+amx-emulated"))) CHECK(!program.uses_tiles);
    CHECK(explain(spec_of(kPlain), target_of("x86-64-v4"), kPrefill) ==
          "prefill:\n"
          "amx (cpu/attend_prefill_amx.cc) declines: target is x86-64-v4, which lacks amx-bf16\n"
          "simd (cpu/attend_prefill.cc) serves\n");
    CHECK(explain(spec_of(kPlain), target_of("x86-64-v3+amx-tile+amx-bf16"), kPrefill)
              .contains("target is x86-64-v3+amx-tile+amx-bf16, which lacks the AVX-512 that goes with it\n"));
    CHECK(explain(spec_of(kPlain + ",t2=f32"), target_of("x86-64-v4-amx"), kPrefill)
              .contains("amx (cpu/attend_prefill_amx.cc) declines: t2 is f32; AMX multiplies what is f16, bf16 or "
                        "quantised\n"));
}

TEST_CASE("AMX decodes bfloat16 where a head's tokens are neighbours") {
    const std::string brain = kPlain + ",t1=bf16,t2=bf16";
    for (const char* target : {"x86-64-v4-amx", "x86-64-v3+amx-emulated", "x86-64-v4-bf16+sse4a+amx-emulated"}) {
        CAPTURE(target);
        CHECK(chosen(kDecode, brain + ",layout=L2HTD", target) == "amx");
        CHECK(chosen(kDecode, brain + ",layout=LHT2D,attn_mask=3", target) == "amx");
        CHECK(chosen(kDecode, "t1=bf16,head_dim=96,cache_mode=block_table,layout=L2NHTD", target) == "amx");
        CHECK(chosen(kDecode, "t1=bf16,head_dim=40,cache_mode=block_table,layout=L2NHTD", target) == "simd");
        CHECK(chosen(kDecode, brain + ",layout=TL2HD", target) == "simd");
        CHECK(chosen(kDecode, "t1=bf16,cache_mode=block_table,layout=L2NTHD", target) == "simd");
        CHECK(chosen(kDecode, brain + ",layout=LHTD,value_layout=HLTD", target) == "amx");
        CHECK(chosen(kDecode, brain + ",layout=LHTD,value_layout=LTHD", target) == "simd");
        CHECK(chosen(kDecode, brain + ",layout=LTHD,value_layout=LHTD", target) == "simd");
        CHECK(chosen(kDecode, kPlain + ",layout=L2HTD,t2=bf16", target) == "simd");
        CHECK(chosen(kDecode, kPlain + ",layout=L2HTD,t1=bf16,t2=f16", target) == "simd");
        CHECK(chosen(kDecode, kPlain + ",layout=L2HTD,t1=bf16,quant_bit=8", target) == "simd");
        CHECK(chosen(kDecode, "op=MultiHeadAttention,t1=bf16", target) == "simd");
    }
    CHECK(chosen(kDecode, brain + ",layout=L2HTD", "x86-64-v4-bf16") == "simd");
    const auto why = [](const std::string& spec, const char* target) {
        return explain(spec_of(spec), target_of(target), kDecode);
    };
    CHECK(why(brain, "x86-64-v4-amx").contains("amx (cpu/attend_decode_amx.cc) declines: layout is TL2HD"));
    CHECK(why(brain + ",layout=LHTD,value_layout=LTHD", "x86-64-v4-amx").contains("declines: value_layout is LTHD"));
    CHECK(why("t1=bf16,head_dim=72,layout=L2HTD", "x86-64-v4-amx")
              .contains("declines: head_dim is 72; decode by AMX takes multiples of 32\n"));
    CHECK(why("op=MultiHeadAttention,t1=bf16", "x86-64-v4-amx").contains("declines: op has no cache"));
    CHECK(why(kPlain, "x86-64-v4-amx").contains("declines: t1 is f16; decode by AMX takes bf16\n"));
    CHECK(why(kPlain + ",t1=bf16,quant_bit=4", "x86-64-v4-amx").contains("declines: quant_bit is 4"));
    CHECK(why(kPlain + ",t1=bf16,t2=f16", "x86-64-v4-amx").contains("declines: t2 is f16; decode by AMX takes bf16\n"));
    for (const Program& program : lowered(brain + ",layout=L2HTD", target_of("x86-64-v4-amx")))
        CHECK(program.uses_tiles == (program.info->bit == kPrefill || program.info->bit == kDecode));
}

TEST_CASE("AMX decodes quantised caches where many codes share a scale, for groups that fill its tiles") {
    const std::string bytes = "head_dim=64,quant_bit=8,", nibbles = "head_dim=64,quant_bit=4,";
    for (const char* target : {"x86-64-v4-amx", "x86-64-v3+amx-emulated", "x86-64-v4-bf16+sse4a+amx-emulated"}) {
        CAPTURE(target);
        CHECK(chosen(kDecode, bytes + "quant_group=32,group=3,t1=f32", target) == "amx-int8");
        CHECK(chosen(kDecode, bytes + "quant_group=64,group=8,t1=bf16,layout=L2HTD", target) == "amx-int8");
        CHECK(chosen(kDecode, nibbles + "quant_group=32,group=4,t1=bf16", target) == "amx-int8");
        CHECK(chosen(kDecode, nibbles + "quant_group=64,group=4,attn_mask=3", target) == "amx-int8");
        CHECK(chosen(kDecode, bytes + "quant_group=16,group=4", target) == "simd");
        CHECK(chosen(kDecode, "head_dim=96,group=4,quant_bit=4,quant_group=32", target) == "simd");
    }
    CHECK(chosen(kDecode, bytes + "quant_group=32,group=4", "x86-64-v4-vnni") == "vnni");
    // Without products of bytes, or without those of bfloat16.
    CHECK(chosen(kDecode, bytes + "quant_group=32,group=4", "x86-64-v4-fp16+amx-tile+amx-bf16") == "vnni");
    CHECK(chosen(kDecode, bytes + "quant_group=32,group=4", "x86-64-v4-fp16+amx-tile+amx-int8") == "amx-int8");
    CHECK(chosen(kPrefill, bytes + "quant_group=32,group=4", "x86-64-v4-fp16+amx-tile+amx-int8") == "simd");
    const std::string two = explain(spec_of(bytes + "quant_group=32,group=2"), target_of("x86-64-v4-amx"), kDecode);
    CHECK(
        two.contains("amx-int8 (cpu/attend_decode_amx_int8.cc) declines: group is 2; fewer than 3 queries fill too "
                     "little of a tile\n"));
    CHECK(two.contains("vnni (cpu/attend_decode_vnni.cc) serves\n"));
    for (const Program& program : lowered(bytes + "quant_group=32,group=4", target_of("x86-64-v4-amx")))
        CHECK(program.uses_tiles == (program.info->bit == kPrefill || program.info->bit == kDecode));
}

TEST_CASE("products of bytes decode quantised caches where the target has AVX512-VNNI and many codes share a scale") {
    const std::string bytes = kPlain + ",quant_bit=8,", nibbles = kPlain + ",quant_bit=4,";
    for (const char* target : {"x86-64-v4-vnni", "x86-64-v4-bf16+sse4a", "x86-64-v4-fp16+amx-tile+amx-bf16"}) {
        CAPTURE(target);
        CHECK(chosen(kDecode, bytes + "quant_group=32,t1=f32", target) == "vnni");
        CHECK(chosen(kDecode, bytes + "quant_group=64,t1=bf16", target) == "vnni");
        CHECK(chosen(kDecode, nibbles + "quant_group=32,attn_mask=3", target) == "vnni");
        CHECK(chosen(kDecode, "head_dim=96,quant_bit=8,quant_group=96", target) == "vnni");
        CHECK(chosen(kDecode, bytes + "quant_group=8", target) == "simd");
        CHECK(chosen(kDecode, bytes + "quant_group=16", target) == "simd");
        CHECK(chosen(kDecode, nibbles + "quant_group=16", target) == "simd");
        CHECK(chosen(kDecode, "head_dim=96,quant_bit=4,quant_group=32", target) == "simd");
        CHECK(chosen(kDecode, "head_dim=80,quant_bit=8,quant_group=16", target) == "simd");
        CHECK(chosen(kDecode, kPlain, target) == "simd");
        CHECK(chosen(kDecode, "op=MultiHeadAttention", target) == "simd");
    }
    const std::string brain = nibbles + "quant_group=32,t1=bf16";
    CHECK(chosen(kDecode, brain, "x86-64-v4-fp16") == "vnni");
    CHECK(chosen(kDecode, brain, "x86-64-v4-bf16+sse4a") == "simd");
    for (const char* target : {"x86-64-v3+avxvnni", "x86-64-v4", "x86-64-v4+avx512vnni"})
        CHECK(chosen(kDecode, bytes + "quant_group=32", target) == "simd");
    CHECK(explain(spec_of(bytes + "quant_group=8"), target_of("x86-64-v4-vnni"), kDecode) ==
          "decode:\n"
          "amx (cpu/attend_decode_amx.cc) declines: target is x86-64-v4-vnni, which lacks amx-bf16\n"
          "amx-int8 (cpu/attend_decode_amx_int8.cc) declines: target is x86-64-v4-vnni, which lacks amx-int8\n"
          "vnni (cpu/attend_decode_vnni.cc) declines: quant_group is 8; products of bytes take multiples of 32\n"
          "simd (cpu/attend_decode.cc) serves\n");
    CHECK(explain(spec_of(bytes + "quant_group=32"), target_of("x86-64-v4+avx512vnni"), kDecode)
              .contains("declines: target is x86-64-v4+avx512vnni, which lacks avx512vbmi\n"));
}

TEST_CASE("head_dim ends at 256 on CUDA, at the spec's own limit on CPUs") {
    const std::string wide = "op=MultiHeadAttention,head_dim=264";
    CHECK(lower(spec_of(wide), target_of("x86-64")).has_value());
    CHECK(lower(spec_of("op=MultiHeadAttention,head_dim=256"), target_of("sm_90a")).has_value());
    for (const char* target : {"sm_90a", "cuda-emulated"}) {
        const Result<std::vector<Program>> refused = lower(spec_of(wide), target_of(target));
        REQUIRE(!refused.has_value());
        CHECK(refused.error().status == KVJIT_BAD_SPEC);
        CHECK(refused.error().argument == "head_dim");
        CHECK(refused.error().value == 264);
        CHECK(refused.error().limit == 256);
    }
}

TEST_CASE("what no kernel can do yet is a spec all the same, and refused by its field") {
    for (const char* target : {"x86-64", "sm_90a"}) {
        const Result<std::vector<Program>> refused = lower(spec_of("value_head_dim=64"), target_of(target));
        REQUIRE(!refused.has_value());
        CHECK(refused.error().status == KVJIT_BAD_SPEC);
        CHECK(refused.error().argument == "value_head_dim");
        CHECK(refused.error().message.ends_with("this version of kvjit has no kernels for it yet"));
    }
    CHECK(lower(spec_of("value_head_dim=128"), target_of("x86-64")).has_value());  // head_dim's own
}

TEST_CASE("rows and pages in pieces have kernels of their own that store and load, and none that attends") {
    struct Case {
        const char *text, *field, *layout;  // to move to
    };
    const Case cases[] = {
        {"layout=T2DH", "layout", "T2HD"},
        {"layout=THD,value_layout=TDH", "value_layout", "THD"},
        {"layout=2HTDd8", "layout", "2HTD"},
        {"layout=vllm:rocm", "layout", "NHTD"},
        {"cache_mode=block_table,layout=NL2HDTt16d8", "layout", "NL2HTD"},
        {"cache_mode=block_table,layout=N2THt16D", "layout", "N2THD"},
    };
    for (const auto& [text, field, layout] : cases) {
        for (const char* target : {"x86-64", "sm_90a", "cuda-emulated"}) {
            CAPTURE(text);
            for (const auto program : {KVJIT_PROGRAM_STORE, KVJIT_PROGRAM_LOAD})
                CHECK(chosen(program, "op=KeyValueCache," + std::string(text), target) == "cut");
            const Result<std::vector<Program>> refused = lower(spec_of(text), target_of(target));
            REQUIRE(!refused.has_value());
            CHECK(refused.error().status == KVJIT_BAD_SPEC);
            CHECK(refused.error().argument == field);
            CHECK(refused.error().message.ends_with("; relayout the cache to " + std::string(field) + "=" + layout +
                                                    ", say (op Relayout)"));
        }
    }
    CHECK(chosen(KVJIT_PROGRAM_STORE, "op=KeyValueCache", "x86-64") == "simd");
    CHECK(chosen(KVJIT_PROGRAM_LOAD, "op=KeyValueCache,head_dim=64,layout=T2HDd64", "sm_80") == "warps");
    CHECK(chosen(kDecode, kPlain + ",layout=T2HDd64", "sm_80") == "mma");
    CHECK(chosen(KVJIT_PROGRAM_STORE, "op=KeyValueCache,head_dim=264,layout=T2DH", "sm_80").contains("at most 256"));
}

TEST_CASE("the explanation names each variant once, why it declines, and the one that serves") {
    CHECK(explain(spec_of(kPlain), target_of("sm_80"), kDecode) ==
          "decode:\n"
          "mma (cuda/attend_decode_mma.cu) serves\n"
          "dot (cuda/attend_decode_dot.cu) is not asked\n");
    CHECK(explain(spec_of("head_dim=64,t1=f32"), target_of("sm_80"), kDecode) ==
          "decode:\n"
          "mma (cuda/attend_decode_mma.cu) declines: t1 is f32; products on tensor cores are of f16 or bf16\n"
          "dot (cuda/attend_decode_dot.cu) serves\n");
    CHECK(
        explain(spec_of(kPlain + ",t2=f32"), target_of("sm_80"), kPrefill) ==
        "prefill:\n"
        "wgmma (cuda/attend_prefill_wgmma.cu) declines: t2 is f32; products on tensor cores are of one type, t1's f16\n"
        "mma (cuda/attend_prefill_mma.cu) declines: t2 is f32; products on tensor cores are of one type, t1's f16\n"
        "dot (cuda/attend_prefill_dot.cu) serves\n");
    const std::string none = explain(spec_of("op=Merge,head_dim=512"), target_of("sm_80"), KVJIT_ALL_PROGRAMS);
    CHECK(none == "merge:\nwarps (cuda/merge.cu) declines: head_dim is 512; CUDA kernels take at most 256\n");
}

TEST_CASE("the explanation has the asked programs, in the order of a call") {
    const std::string all = explain(spec_of(kPlain), target_of("sm_80"), KVJIT_ALL_PROGRAMS);
    std::size_t at = 0;
    for (const char* name : {"check:\n", "store:\n", "decode:\n", "prefill:\n"}) {
        at = all.find(name, at);
        CHECK_MESSAGE(at != all.npos, name);
    }
    CHECK(explain(spec_of(kPlain), target_of("x86-64"), KVJIT_PROGRAM_MERGE) == "merge:\nsimd (cpu/merge.cc) serves\n");
}

TEST_CASE("variant and revision are part of the identity; a source holds the one algorithm") {
    const Target target = target_of("sm_90a");
    std::set<std::string> identities;
    for (const char* text : {"head_dim=64,group=4", "head_dim=64,group=4,t1=f32"}) {
        for (const Program& program : lowered(text, target)) {
            const std::string identity = identity_text(program, target);
            CHECK(identity.contains(";variant=" + std::string(program.variant->name) + ";"));
            CHECK(identity.contains(";revision=" + std::to_string(program.variant->revision) + ";"));
            identities.insert(identity);
            const Result<std::string> source = render(program, target, embedded_templates());
            REQUIRE_MESSAGE(source.has_value(), source.error().message);
            if (program.variant->name == "dot") CHECK(!source->contains("templates/cuda/mma_"));
            if (program.variant->name == "mma") CHECK(!source->contains("templates/cuda/attend_dot"));
        }
    }
    CHECK(identities.size() == 7);  // check is the same for both
}

TEST_CASE("a launch has threads and fits into the target's shared memory, on CUDA; there is none on CPUs") {
    for (const char* name : {"sm_80", "sm_89", "sm_90a", "cuda-emulated"}) {
        const Target target = target_of(name);
        for (const Program& program : all_programs(target)) {
            CAPTURE(program.info->name);
            CHECK(program.launch.threads % 32 == 0);
            CHECK(program.launch.threads > 0);
            CHECK(program.launch.rows > 0);
            CHECK(program.launch.shared_bytes <= max_shared_bytes(target));
        }
    }
    for (const Program& program : all_programs(target_of("x86-64"))) CHECK(program.launch.threads == 0);
}

TEST_CASE(
    "decode takes the numbers of new tokens that cost a CPU less than prefill; a GPU's takes one token of any group") {
    // "1-3 5": from 1 to 3, and 5.
    const auto tokens = [](std::string_view fields, std::string_view target) {
        const KernelSpec spec = spec_of("group=" + std::string(fields));
        const Target on = target_of(std::string(target));
        if (on.backend != Backend::kCpu) return "1-" + std::to_string(gpu_decode_tokens(spec));
        const TokenCounts counts = cpu_decode_tokens(spec, on, *lower(spec, on));
        std::string text;
        for (int first = 1; first <= counts.most(); ++first) {
            if (!counts.contains(first)) continue;
            int last = first;
            while (counts.contains(last + 1)) ++last;
            text +=
                (text.empty() ? "" : " ") + std::to_string(first) + (last > first ? "-" + std::to_string(last) : "");
            first = last;
        }
        return text;
    };
    CHECK(tokens("1", "x86-64-v4") == "1-9");
    CHECK(tokens("4", "x86-64-v4") == "1-3 5");
    CHECK(tokens("8", "x86-64-v4") == "1-3");
    CHECK(tokens("5", "x86-64-v3") == "1-2");
    CHECK(tokens("8", "x86-64-v3") == "1-3 5");
    CHECK(tokens("4,quant_bit=8", "x86-64-v3") == "1-3 5");
    CHECK(tokens("28", "x86-64-v3") == "1-2");
    CHECK(tokens("29", "x86-64-v3") == "");

    // Half of prefill's tile is full with 4 tokens of 4 heads; 5 would fill little of the other half.
    CHECK(tokens("4,t1=bf16,t2=bf16", "x86-64-v4") == "1-6");
    CHECK(tokens("4,quant_bit=8,quant_group=32", "x86-64-v4-bf16") == "1-3 5");
    CHECK(tokens("4,quant_bit=4,quant_group=32", "x86-64-v4-bf16") == "1-6");

    // AMD: more than the rows of one pass of prefill.
    for (const char* target : {"x86-64-v3+sse4a", "x86-64-v4-bf16+sse4a"}) {
        CHECK(tokens("1", target) == "1-24");
        CHECK(tokens("3", target) == "1-9 11-12");
        CHECK(tokens("4", target) == "1-16");
        CHECK(tokens("8", target) == "1-8");
        CHECK(tokens("4,quant_bit=8", target) == "1-10 13");
        CHECK(tokens("4,t1=bf16,t2=bf16", target) == "1-16");
        CHECK(tokens("64", target) == "1");
        CHECK(tokens("65", target) == "");
    }
    CHECK(tokens("4,t1=bf16,t2=bf16", "x86-64-v4-amx+sse4a") == "1-2");

    // GPUs.
    CHECK(tokens("7", "sm_80") == "1-2");
    CHECK(tokens("16", "cuda-emulated") == "1-1");
    CHECK(tokens("17", "sm_80") == "1-1");
    CHECK(tokens("4,quant_bit=8", "sm_80") == "1-8");
    CHECK(tokens("4,quant_bit=8,t1=f32", "sm_80") == "1-4");
    CHECK(tokens("32,quant_bit=4", "sm_80") == "1-1");

    // AMX: bfloat16 queries, above all over keys that need no packing.
    for (const char* target : {"x86-64-v4-amx", "x86-64-v3+amx-emulated"}) {
        CHECK(tokens("4", target) == "1-6");
        CHECK(tokens("1,t1=bf16,t2=bf16", target) == "1-6");
        CHECK(tokens("4,t1=bf16,t2=bf16", target) == "1-2");
        CHECK(tokens("8,t1=bf16,t2=bf16", target) == "1");
        CHECK(tokens("4,t1=bf16,t2=f16", target) == "1-4");
        CHECK(tokens("4,t1=bf16,quant_bit=8", target) == "1-3");
        // What AMX decodes: up to 24 rows.
        CHECK(tokens("1,t1=bf16,layout=L2HTD", target) == "1-24");
        CHECK(tokens("3,t1=bf16,layout=L2HTD", target) == "1-8");
        CHECK(tokens("4,t1=bf16,layout=L2HTD", target) == "1-6");
        CHECK(tokens("17,t1=bf16,layout=L2HTD", target) == "1");
        CHECK(tokens("256,t1=bf16,layout=L2HTD", target) == "1");
        // By products of bytes: codes are loaded once for 32 rows.
        CHECK(tokens("4,quant_bit=8,quant_group=32", target) == "1-14");
        CHECK(tokens("4,t1=bf16,quant_bit=8,quant_group=32", target) == "1-9");
        CHECK(tokens("4,t1=f32,quant_bit=4,quant_group=64", target) == "1-16");
        CHECK(tokens("65,quant_bit=8,quant_group=32", target) == "");
    }
}
