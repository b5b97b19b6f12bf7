// Kernels compiled for a level hold no instruction that a machine of that level lacks: what is executed is
// disassembled.
#include <map>

#include "generator/program.h"
#include "generator/render.h"
#include "generator/spec.h"
#include "instructions.h"
#include "support.h"

using namespace kvjit;
using namespace kvjit::test;

namespace {

// Every program, with types whose conversions, dequantisation and quotients the levels have instructions for.
const std::vector<std::string> kSpecs = {
    "op=MultiHeadCacheAttention,head_dim=128,group=4,cache_mode=page_table,layout=L2HTD",
    "op=MultiHeadCacheAttention,head_dim=64,group=8,quant_bit=8,attn_mask=2",
    "op=MultiHeadCacheAttention,head_dim=80,group=1,t1=bf16,quant_bit=4,quant_group=16,t3=f16,is_alibi=1",
    "op=MultiHeadCacheAttention,head_dim=128,group=4,quant_bit=8,quant_group=32",  // products of bytes
    "op=MultiHeadCacheAttention,head_dim=128,group=8,t1=bf16,t2=bf16",             // products of bfloat16
    "op=KeyValueCache,head_dim=64,t1=f16,t2=f32,layout=2HTLD",
    "op=Merge,head_dim=64",
    "op=Relayout,head_dim=64,quant_bit=8,to_layout=TL2HD,to_quant_bit=4",
};

std::vector<Instruction> program_code(const gen::Program& program, const gen::Target& target) {
    const gen::Result<std::string> source = gen::render(program, target, gen::embedded_templates());
    REQUIRE_MESSAGE(source.has_value(), source.error().message);
    return disassembled(compile(*source, target));
}

/// Code of all programs by "program, spec".
std::map<std::string, std::vector<Instruction>> code_for(const gen::Target& target) {
    std::map<std::string, std::vector<Instruction>> code;
    for (const std::string& text : kSpecs) {
        const gen::Result<gen::KernelSpec> spec = gen::parse_spec(text);
        REQUIRE_MESSAGE(spec.has_value(), spec.error().message);
        const gen::Result<std::vector<gen::Program>> programs = gen::lower(*spec, target);
        REQUIRE_MESSAGE(programs.has_value(), programs.error().message);
        for (const gen::Program& program : *programs)
            code[std::string(program.info->name) + ", " + text] = program_code(program, target);
    }
    return code;
}

void check_level(std::string_view name) {
    const gen::Target target = level(name);
    CAPTURE(std::string(name));
    for (const auto& [program, code] : code_for(target)) {
        CAPTURE(program);
        if (!target.has("sse4.2")) CHECK(first(code, needs_v2) == "");
        if (!target.has("avx2")) CHECK(first(code, needs_v3) == "");
        if (!target.has("avx512f")) CHECK(first(code, needs_avx512) == "");
        if (target.has("avx512f")) CHECK(first(code, needs_avx512) != "");
        for (const auto& [feature, instruction] :
             excess(code, [&](std::string_view feature) { return target.has(feature); }))
            FAIL_CHECK(instruction << " takes " << feature);
    }
}

}  // namespace

TEST_CASE("kernels hold no instruction beyond their level, and AVX-512 where the level has it") {
    for (const std::string_view name : gen::x86_levels()) check_level(name);
}

TEST_CASE("nor beyond features without a level") {
    for (const char* name : {"x86-64-v2+avx+avx2+f16c", "x86-64-v3+gfni", "x86-64-v4+avx512vnni"}) check_level(name);
}
