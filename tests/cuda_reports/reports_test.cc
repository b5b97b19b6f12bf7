// Every program of a set of specs compiles for an architecture, and what ptxas reports of it is what fast kernels need:
// no stack frame, no spill. `cuda_reports_test --sm sm_90a`; the table goes to standard output.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <future>
#include <set>
#include <string>
#include <vector>

#include "cuda/compile_report.h"
#include "cuda/nvrtc_compiler.h"
#include "generator/program.h"
#include "generator/render.h"

namespace kvjit::test {
namespace {

std::string architecture = "sm_90a";

rt::Compiler& compiler() {
    static const std::unique_ptr<rt::Compiler> made = rt::make_nvrtc_compiler({});
    return *made;
}

/// The head dims that must not spill, every kind of cache, both kinds of products, several groups, masks.
const std::vector<std::string> kSpecs = {
    "head_dim=64,group=4,cache_mode=page_table,layout=L2HTD",
    "head_dim=64,group=8,quant_bit=8,cache_mode=page_table,layout=L2HTD",
    "head_dim=64,group=1,quant_bit=4,quant_group=32,cache_mode=block_table,layout=N2LTHD,page_size=16",
    "head_dim=64,group=7,quant_bit=4,quant_group=8,cache_mode=token_table,index_type=i32",
    "head_dim=64,group=4,t1=f32,quant_bit=8,t3=f32",
    "head_dim=128,group=4,cache_mode=page_table,layout=L2HTD",
    "head_dim=128,group=4,quant_bit=8,cache_mode=page_table,layout=L2HTD",
    "head_dim=128,group=8,quant_bit=8,t3=f32,cache_mode=block_table,layout=N2LTHD,page_size=16",
    "head_dim=128,group=4,quant_bit=4,quant_group=32,cache_mode=page_table,layout=L2HTD",
    "head_dim=128,group=71,quant_bit=8,quant_group=128,is_alibi=1",
    "head_dim=128,group=4,attn_mask=3,quant_bit=8,cache_mode=page_table",
    "head_dim=128,group=1,cache_mode=page_table",
    "head_dim=128,group=4,t1=f32,t2=f16",
    "head_dim=128,group=4,t1=bf16,cache_mode=page_table,layout=L2HTD",
    "head_dim=128,group=4,t1=bf16,quant_bit=8,cache_mode=page_table,layout=L2HTD",
    "head_dim=128,group=8,t1=bf16,quant_bit=8,t3=f32,cache_mode=block_table,layout=N2LTHD,page_size=16",
    "head_dim=64,group=4,t1=bf16,quant_bit=4,t3=f16,quant_group=32,cache_mode=page_table",
    "op=MultiHeadAttention,head_dim=128,group=4",
    "op=MultiHeadAttention,head_dim=64,group=1,t1=f32,attn_mask=2",
    "op=KeyValueCache,head_dim=128,quant_bit=4",
    "op=Merge,head_dim=128",
};
/// What warpgroups prefill: all head dims, both types, what changes scores.
const std::vector<std::string> kGroupSpecs = {
    "head_dim=64,group=4,cache_mode=page_table,layout=L2HTD",
    "head_dim=64,group=8,t1=bf16,cache_mode=block_table,page_size=16,index_type=i32,layout=N2THD,has_window=1,has_"
    "sinks=1",
    "head_dim=64,group=1,is_alibi=1,has_soft_cap=1",
    "head_dim=64,group=4,is_alibi=1,has_window=1,cache_mode=block_pointers,page_size=16,layout=2LTHD",
    "head_dim=128,group=4,cache_mode=page_table,layout=L2HTD",
    "head_dim=128,group=8,t1=bf16,cache_mode=block_pointers,page_size=16,layout=2LTHD",
    "head_dim=128,group=4,has_soft_cap=1",
    "head_dim=128,group=1,t1=bf16,is_alibi=1,cache_mode=token_table",
    "op=MultiHeadAttention,head_dim=128,group=4,is_causal=1",
    "head_dim=192,group=16,has_window=1",
    "head_dim=256,group=4,t1=bf16,cache_mode=page_table,layout=L2HTD",
    "head_dim=256,group=2,is_alibi=1,has_window=1,has_soft_cap=1",
};
/// These have to compile; they may spill.
const std::vector<std::string> kOddSpecs = {
    "head_dim=40,group=3,quant_bit=8,quant_group=40",
    "head_dim=80,group=5,quant_bit=4,quant_group=16,cache_mode=page_table,page_size=7",
    "head_dim=96,group=6,quant_bit=8,quant_group=32",
    "head_dim=256,group=8,quant_bit=8,cache_mode=page_table",
    "head_dim=256,group=2,t1=f32",
    "op=MultiHeadAttention,head_dim=256,group=16",
};

struct Compiled {
    std::string spec, program;
    gen::Result<rt::CompileOutput> output;
};

/// Programs that no spec had before: several specs share one, as those of a table's check.
std::vector<std::future<Compiled>> compile_all(const std::string& text, const gen::Target& target,
                                               std::uint32_t bits = KVJIT_ALL_PROGRAMS) {
    std::vector<std::future<Compiled>> running;
    const gen::Result<gen::KernelSpec> spec = gen::parse_spec(text);
    REQUIRE_MESSAGE(spec.has_value(), spec.error().message);
    const gen::Result<std::vector<gen::Program>> programs = gen::lower(*spec, target);
    REQUIRE_MESSAGE(programs.has_value(), programs.error().message);
    static std::set<std::string> sources;
    for (const gen::Program& program : *programs) {
        if ((program.info->bit & bits) == 0) continue;
        const gen::Result<std::string> source = gen::render(program, target, gen::embedded_templates());
        REQUIRE_MESSAGE(source.has_value(), source.error().message);
        if (!sources.insert(*source).second) continue;
        running.push_back(std::async(std::launch::async, [=, name = std::string(program.info->name), &target] {
            return Compiled{text, name, compiler().compile(*source, name, target, rt::CompileStage::kObject)};
        }));
    }
    return running;
}

void expect_report(const Compiled& compiled, bool may_spill) {
    CAPTURE(compiled.spec);
    CAPTURE(compiled.program);
    REQUIRE_MESSAGE(compiled.output.has_value(), compiled.output.error().message);
    // "wgmma.mma_async instructions are serialized due to ...", "warpgroup.arrive is injected ..."
    for (const char* remark : {"warning", "serialized", "injected"})
        CHECK_MESSAGE(!compiled.output->log.contains(remark), compiled.output->log);
    const auto reports = rt::parse_compile_report(compiled.output->log);
    REQUIRE(reports.size() == 1);
    const rt::EntryReport& report = reports[0];
    std::printf("%-8s %-15s %3d registers, %4d stack, %4d spilled  %s\n", architecture.c_str(),
                compiled.program.c_str(), report.registers, report.stack_bytes, report.spill_store_bytes,
                compiled.spec.c_str());
    CHECK(report.entry == "kvjit_" + compiled.program);
    CHECK(report.registers > 0);
    CHECK(report.registers <= 255);
    if (may_spill) return;
    CHECK(report.stack_bytes == 0);
    CHECK(report.spill_store_bytes == 0);
    CHECK(report.spill_load_bytes == 0);
}

void expect_reports(const std::vector<std::string>& specs, bool may_spill) {
    const gen::Result<gen::Target> target = gen::named_target(architecture);
    REQUIRE(target.has_value());
    for (const std::string& spec : specs) {
        for (std::future<Compiled>& running : compile_all(spec, *target)) expect_report(running.get(), may_spill);
    }
}

TEST_CASE("no program for head dims 64 and 128 has a stack frame or spills") {
    expect_reports(kSpecs, false);
}

TEST_CASE("odd head dims and 256 compile too") {
    expect_reports(kOddSpecs, true);
}

TEST_CASE("prefill by warpgroups doesn't spill, and its products run in the background") {
    if (architecture != "sm_90a") return;
    const gen::Target target = *gen::named_target("sm_90a");
    for (const std::string& spec : kGroupSpecs) {
        for (std::future<Compiled>& running : compile_all(spec, target, KVJIT_PROGRAM_PREFILL)) {
            expect_report(running.get(), false);
        }
    }
}

constexpr int kSkipped = 77;

int run(int argc, char** argv) {
    for (int i = 1; i + 1 < argc; ++i) {
        if (std::string(argv[i]) == "--sm") architecture = argv[i + 1];
    }
    if (const auto identity = compiler().identity(); !identity) {
        std::printf("SKIP: %s\n", identity.error().message.c_str());
        return kSkipped;
    }
    return doctest::Context(argc, argv).run();
}

}  // namespace
}  // namespace kvjit::test

int main(int argc, char** argv) {
    return kvjit::test::run(argc, argv);
}
