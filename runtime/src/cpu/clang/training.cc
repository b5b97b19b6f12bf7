// kvjit_compiler_training COMPILER: has libkvjit_compiler.so compile the programs that engines use most, for the levels
// of x86-64 that most machines have. What it runs then is what cmake/bolt.cmake lays out for.
#include <cstdio>
#include <string>

#include "cpu/clang_compiler.h"
#include "generator/program.h"
#include "generator/render.h"
#include "generator/spec.h"
#include "generator/target.h"

namespace {

using namespace kvjit;

constexpr const char* kSpecs[] = {
    "op=MultiHeadCacheAttention,head_dim=128,group=4,cache_mode=page_table,layout=L2HTD,quant_bit=0",
    "op=MultiHeadCacheAttention,head_dim=128,group=4,cache_mode=page_table,layout=L2HTD",
    "op=MultiHeadCacheAttention,head_dim=64,group=8,quant_bit=8,quant_group=32",
    "op=MultiHeadCacheAttention,head_dim=128,group=8,t1=bf16,cache_mode=page_table",
    "op=MultiHeadCacheAttention,head_dim=80,group=1,quant_bit=4,attn_mask=2",
    "op=KeyValueCache,head_dim=128,quant_bit=8",
};
constexpr const char* kLevels[] = {"x86-64-v3", "x86-64-v4", "x86-64-v4-bf16"};

gen::Result<void> compile_programs(rt::CpuCompiler& compiler, const gen::KernelSpec& spec, const gen::Target& target) {
    const auto programs = gen::lower(spec, target);
    if (!programs) return std::unexpected(programs.error());
    for (const gen::Program& program : *programs) {
        const auto source = gen::render(program, target, gen::embedded_templates());
        if (!source) return std::unexpected(source.error());
        const auto output = compiler.compile(*source, "training.cc", target, rt::CompileStage::kObject);
        if (!output) return std::unexpected(output.error());
    }
    return {};
}

gen::Result<void> train(const std::string& path) {
    const auto compiler = rt::make_compiler(path);
    for (const char* text : kSpecs) {
        const auto spec = gen::parse_spec(text);
        if (!spec) return std::unexpected(spec.error());
        for (const char* level : kLevels) {
            const auto target = gen::named_target(level);
            if (!target) return std::unexpected(target.error());
            if (auto done = compile_programs(*compiler, *spec, *target); !done) return done;
        }
    }
    return {};
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "Usage: kvjit_compiler_training COMPILER\n");
        return 2;
    }
    const auto done = train(argv[1]);
    if (!done) std::fprintf(stderr, "%s\n", done.error().message.c_str());
    return done ? 0 : 1;
}
