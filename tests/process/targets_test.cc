// Kernels for named levels of x86-64 run here and agree, or are refused where the machine lacks them. CUDA kernels run
// here where the emulation is.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>

#include "call.h"
#include "fixture.h"

using namespace kvjit::test;

namespace {

constexpr const char* kLevels[] = {"x86-64",         "x86-64-v2",      "x86-64-v3",           "x86-64-v4",
                                   "x86-64-v4-vnni", "x86-64-v4-bf16", "x86-64-v4-bf16+sse4a"};

/// GCC's idea of this machine, which shares no code with kvjit's.
bool machine_runs(const std::string& level) {
    __builtin_cpu_init();
    if (level == "x86-64-v2") return __builtin_cpu_supports("x86-64-v2");
    if (level == "x86-64-v3") return __builtin_cpu_supports("x86-64-v3");
    if (level == "x86-64") return true;
    if (!__builtin_cpu_supports("x86-64-v4")) return false;
    const bool vnni = __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vbmi");
    const bool bfloat16 = vnni && __builtin_cpu_supports("avx512bf16");
    if (level == "x86-64-v4-vnni") return vnni;
    if (level == "x86-64-v4-bf16") return bfloat16;
    if (level == "x86-64-v4-bf16+sse4a") return bfloat16 && __builtin_cpu_supports("sse4a");
    return level == "x86-64-v4";
}

kvjit::Engine memory_engine() {
    kvjit::EngineOptions options;
    options.cache_dir = "";
    auto engine = kvjit::Engine::create(options);
    REQUIRE(engine);
    return std::move(*engine);
}

/// Of the call, decoding and prefilling, on the level's kernel. Empty if the level is refused, as it then must be.
std::vector<float> output_on(const kvjit::Engine& engine, const char* level, std::vector<std::int8_t>& cache) {
    const auto target = kvjit::Target::cpu(level);
    REQUIRE(target);
    const auto kernel = engine.kernel(*kvjit::KernelSpec::parse(kCallSpec), *target);
    REQUIRE(kernel);
    std::vector<float> output;
    for (const std::int64_t tokens : {1, 70}) {
        const ApiCall call = make_call(2, tokens, 100);
        const auto done = plan_and_run(*kernel, call);
        CHECK(done.has_value() == machine_runs(level));
        if (!done) {
            CHECK(done.error().status() == KVJIT_BAD_TARGET);
            return {};
        }
        std::ranges::copy(elements_of<float>(call.tensors.attn_output), std::back_inserter(output));
        std::ranges::copy(elements_of<std::int8_t>(call.tensors.cache), std::back_inserter(cache));
    }
    return output;
}

/// Calls' specs and the programs that they have, whose loops differ most.
constexpr const char* kLogSpecs[] = {
    "head_dim=8,group=1,t1=f32",
    "head_dim=96,group=4,attn_mask=3,is_alibi=1",
    "head_dim=128,group=4,quant_bit=8",
    "head_dim=256,group=8,quant_bit=4,cache_mode=offset",
    "head_dim=72,group=3,t1=bf16,has_window=1",
    "head_dim=192,group=8,t1=bf16,quant_bit=4,attn_mask=2",
    "op=KeyValueCache,head_dim=512,quant_bit=8,cache_mode=page_table",
    "op=KeyValueCache,head_dim=40,quant_bit=4,t1=f32,quant_group=4",
};

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
    double largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(double(a[i]) - double(b[i])));
    return largest;
}

}  // namespace

TEST_CASE("the compiler has nothing to say about the templates") {
    const kvjit::Engine engine = memory_engine();
    for (const char* level : kLevels) {
        for (const char* text : kLogSpecs) {
            CAPTURE(level);
            CAPTURE(text);
            const auto kernel = engine.kernel(*kvjit::KernelSpec::parse(text), *kvjit::Target::cpu(level));
            REQUIRE(kernel);
            const auto log = kernel->emit(KVJIT_STAGE_LOG);
            REQUIRE_MESSAGE(log, log.error().message());
            CHECK(*log == "");
        }
    }
}

TEST_CASE("every level of x86-64 gives the same results") {
    const kvjit::Engine engine = memory_engine();
    std::vector<std::int8_t> baseline_cache;
    const std::vector<float> baseline = output_on(engine, "x86-64", baseline_cache);
    REQUIRE(!baseline.empty());
    const double scale = largest_difference(baseline, std::vector<float>(baseline.size()));
    for (const char* level : kLevels) {
        CAPTURE(level);
        std::vector<std::int8_t> cache;
        const std::vector<float> output = output_on(engine, level, cache);
        if (output.empty()) continue;
        CHECK(output.size() == baseline.size());
        CHECK(largest_difference(output, baseline) <= 1e-5 * scale);
        CHECK(cache == baseline_cache);
    }
}

TEST_CASE("code for any level can be looked at") {
    const kvjit::Engine engine = memory_engine();
    for (const char* level : kLevels) {
        CAPTURE(level);
        const auto kernel = engine.kernel(*kvjit::KernelSpec::parse(kCallSpec), *kvjit::Target::cpu(level));
        REQUIRE(kernel);
        const auto text = kernel->emit(KVJIT_STAGE_ASM, KVJIT_PROGRAM_STORE);
        REQUIRE(text);
        CHECK(text->find("kvjit_store") != text->npos);
        CHECK((text->find("zmm") != text->npos) == std::string(level).starts_with("x86-64-v4"));
    }
}

TEST_CASE("an unknown target is refused with the known ones") {
    const auto target = kvjit::Target::cpu("x86-64-v5");
    REQUIRE(!target);
    CHECK(target.error().status() == KVJIT_BAD_TARGET);
    CHECK(std::string(target.error().message()).find("x86-64-v4") != std::string::npos);
}

TEST_CASE("who asks for cuda-emulated maps the emulation, and nobody else does") {
    const TemporaryFolder cache;
    const Report host = run_child(cache.path()),
                 emulated = run_child(cache.path(), {"KVJIT_TEST_TARGET=cuda-emulated"});
    CHECK_MESSAGE(host["status"] == "KVJIT_OK", host["message"]);
    CHECK(host.number("libkvjit_emulation") == 0);
    CHECK_MESSAGE(emulated["status"] == "KVJIT_OK", emulated["message"]);
    CHECK(emulated.number("libkvjit_emulation") > 0);
}

TEST_CASE("an emulation that is missing, or another version's, is an error that says where it was looked for") {
    const TemporaryFolder folder;
    const std::string compiler = folder.path("libkvjit_compiler.so"), emulation = folder.path("libkvjit_emulation.so");
    std::filesystem::copy_file(KVJIT_TEST_COMPILER, compiler);
    for (const char* what : {": cannot open shared object file", " belongs to another version of kvjit"}) {
        const Report report = run_child("", {"KVJIT_TEST_TARGET=cuda-emulated", "KVJIT_COMPILER=" + compiler});
        CHECK(report["status"] == "KVJIT_CUDA_ERROR");
        CHECK_MESSAGE(report["message"].find(emulation + what) != std::string::npos, report["message"]);
        CHECK(report["message"].find("; install it beside") != std::string::npos);
        std::filesystem::copy(compiler, emulation, std::filesystem::copy_options::skip_existing);
    }
}
