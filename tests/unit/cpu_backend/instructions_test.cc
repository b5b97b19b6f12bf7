// Emitted code holds what the target has, and nothing else.
#include "instructions.h"
#include "support.h"

using namespace kvjit;
using namespace kvjit::test;

namespace {

// Operations that the levels speed up one after the other: rounding, 32-bit products, minima, byte shuffles, counts.
constexpr std::string_view kTempting = R"(
typedef float F __attribute__((ext_vector_type(kLanes)));
typedef int I __attribute__((ext_vector_type(kLanes)));
typedef unsigned char B __attribute__((ext_vector_type(16)));
extern "C" void floats(F* a, const F* b) { *a = __builtin_elementwise_floor(*a * *b + *a); }
extern "C" void ints(I* a, const I* b) { *a = __builtin_elementwise_min(*a * *b, *b >> *a); }
extern "C" void reverse(B* a) { *a = __builtin_shufflevector(*a, *a, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0); }
extern "C" int count(unsigned long x) { return __builtin_popcountl(x) + __builtin_ctzl(x | 1) + __builtin_clzl(x | 1); }
extern "C" unsigned swap(const unsigned* x) { return __builtin_bswap32(*x); }
)";

std::string tempting_assembly(const gen::Target& target, int vector_bytes) {
    const std::string lanes = "constexpr int kLanes = " + std::to_string(vector_bytes / 4) + ";\n";
    return compile(lanes + std::string(kTempting), target, rt::CompileStage::kAsm);
}

std::string assembly(const gen::Target& target, int vector_bytes) {
    return compile(test::sample_source(vector_bytes), target, rt::CompileStage::kAsm) +
           tempting_assembly(target, vector_bytes);
}

}  // namespace

TEST_CASE("x86-64 code has nothing above SSE2, whatever the vector's width") {
    for (const int bytes : {16, 32, 64}) {
        const auto code = instructions(assembly(level("x86-64"), bytes));
        CHECK(first(code, needs_v2) == "");
        CHECK(first(code, needs_v3) == "");
        CHECK(first(code, needs_avx512) == "");
    }
}

TEST_CASE("x86-64-v2 code uses SSE4 and no AVX") {
    for (const int bytes : {16, 32, 64}) {
        const auto code = instructions(assembly(level("x86-64-v2"), bytes));
        CHECK(first(code, needs_v2) != "");
        CHECK(first(code, needs_v3) == "");
        CHECK(first(code, needs_avx512) == "");
    }
}

TEST_CASE("x86-64-v3 code uses AVX2 and FMA and no AVX-512") {
    for (const int bytes : {16, 32, 64}) {
        const auto code = instructions(assembly(level("x86-64-v3"), bytes));
        CHECK(first(code, is_fma) != "");
        CHECK(first(code, needs_avx512) == "");
        if (bytes > 16) CHECK(first(code, is_ymm) != "");
    }
}

TEST_CASE("x86-64-v4 code uses 64-byte vectors") {
    const auto code = instructions(assembly(level("x86-64-v4"), 64));
    CHECK(first(code, [](const Instruction& i) { return is_fma(i) && is_wide(i); }) != "");
}

TEST_CASE("tuning for a CPU that prefers half vectors doesn't halve them") {
    const gen::Target target = level("x86-64-v4");
    REQUIRE(gen::tuning_cpu(target.features) == "skylake-avx512");
    CHECK(first(instructions(tempting_assembly(target, 64)), is_wide) != "");
}

TEST_CASE("the CPU that a target is tuned for brings no instruction") {
    const gen::Target target = level("x86-64-v2+amx-tile");
    REQUIRE(gen::tuning_cpu(target.features) == "sapphirerapids");
    const auto code = instructions(assembly(target, 32));
    CHECK(first(code, needs_v3) == "");
    CHECK(first(code, needs_avx512) == "");
}

TEST_CASE("a single feature can be left out") {
    const gen::Target target = level("x86-64-v2+avx+avx2+f16c");
    const auto code = instructions(assembly(target, 32));
    CHECK(first(code, is_fma) == "");
    CHECK(first(code, is_ymm) != "");
}

TEST_CASE("no sample needs a library function on any level") {
    for (const char* name : {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"}) {
        for (const int bytes : {16, 32, 64}) {
            const auto output =
                test::compiler().compile(test::sample_source(bytes), "test.cc", level(name), rt::CompileStage::kObject);
            INFO(std::string(name) << ", " << bytes << " bytes");
            CHECK(output.has_value());
        }
    }
}

TEST_CASE("the host's features are complete, consistent and the machine's") {
    const gen::Target& host = rt::host_target();
    CHECK(gen::consistent(host.features) == host.features);
    CHECK(host.has("sse2"));
    __builtin_cpu_init();
    CHECK(host.has("avx2") == (__builtin_cpu_supports("avx2") != 0));
    CHECK(host.has("fma") == (__builtin_cpu_supports("fma") != 0));
    CHECK(host.has("avx512f") == (__builtin_cpu_supports("avx512f") != 0));
    CHECK(host.has("avx512vnni") == (__builtin_cpu_supports("avx512vnni") != 0));
}
