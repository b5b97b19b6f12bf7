// Emitted code holds what the target has, and nothing else.
#include <regex>
#include <sstream>

#include "support.h"

using namespace kvjit;
using test::compile;
using test::level;

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

// The first line, "mnemonic<tab>operands", that has the pattern: what a failure shows.
std::string first_match(const std::string& text, const std::string& pattern) {
    const std::regex regex(pattern, std::regex::optimize);
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with('\t') && line[1] != '.' && std::regex_search(line, regex)) return line;
    }
    return {};
}

const char* const kAvx512 = R"(%(zmm|[xy]mm(1[6-9]|2\d|3[01])|k[0-7]))";
const char* const kAvx = R"(^\t(v[a-z0-9]+|rorx|shlx|sarx|shrx|andn|tzcnt|lzcnt|movbe)[lqwb]?\t|%ymm)";
const char* const kAboveBase =
    R"(^\t(pshufb|pmulld|pmin[su]d|pmax[su]d|pminuw|round[ps][sd]|popcnt[lq]?|p?blend[a-z]*|pextr[bdq]|pinsr[bdq]|insertps)"
    R"(|extractps|pmov[sz]x[a-z]*|h(add|sub)p[sd]|movs[hl]dup|movddup|lddqu|ptest|packusdw|palignr|pabs[bwd]|phadd[a-z]*)\t)";

}  // namespace

TEST_CASE("x86-64 code has nothing above SSE2, whatever the vector's width") {
    for (const int bytes : {16, 32, 64}) {
        const std::string text = assembly(level("x86-64"), bytes);
        CHECK(first_match(text, kAboveBase) == "");
        CHECK(first_match(text, kAvx) == "");
        CHECK(first_match(text, kAvx512) == "");
        CHECK(first_match(text, "mulps") != "");
    }
}

TEST_CASE("x86-64-v2 code uses SSE4 and no AVX") {
    for (const int bytes : {16, 32, 64}) {
        const std::string text = assembly(level("x86-64-v2"), bytes);
        CHECK(first_match(text, kAboveBase) != "");
        CHECK(first_match(text, kAvx) == "");
        CHECK(first_match(text, kAvx512) == "");
    }
}

TEST_CASE("x86-64-v3 code uses AVX2 and FMA and no AVX-512") {
    for (const int bytes : {16, 32, 64}) {
        const std::string text = assembly(level("x86-64-v3"), bytes);
        CHECK(first_match(text, "vfmadd[0-9]+ps") != "");
        CHECK(first_match(text, kAvx512) == "");
        if (bytes > 16) CHECK(first_match(text, "%ymm") != "");
    }
}

TEST_CASE("x86-64-v4 code uses 64-byte vectors") {
    const std::string text = assembly(level("x86-64-v4"), 64);
    CHECK(first_match(text, R"(vfmadd[0-9]+ps\t.*%zmm)") != "");
}

TEST_CASE("tuning for a CPU that prefers half vectors doesn't halve them") {
    gen::Target target = level("x86-64-v4");
    target.cpu = "skylake-avx512";
    CHECK(first_match(tempting_assembly(target, 64), R"(vfmadd[0-9]+ps\t.*%zmm)") != "");
}

TEST_CASE("the CPU's name tunes and brings no instruction") {
    gen::Target target = level("x86-64-v2");
    target.cpu = "sapphirerapids";
    const std::string text = assembly(target, 32);
    CHECK(first_match(text, kAvx) == "");
    CHECK(first_match(text, kAvx512) == "");
}

TEST_CASE("a single feature can be left out") {
    gen::Target target = level("x86-64-v3");
    for (std::string& feature : target.features) {
        if (feature == "+fma") feature = "-fma";
    }
    const std::string text = assembly(target, 32);
    CHECK(first_match(text, "vfn?m(add|sub)") == "");
    CHECK(first_match(text, "%ymm") != "");
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
    CHECK(host.features.size() == gen::x86_features().size());
    CHECK(host.triple == level("x86-64").triple);
    CHECK(host.has("sse2"));
    __builtin_cpu_init();
    CHECK(host.has("avx2") == (__builtin_cpu_supports("avx2") != 0));
    CHECK(host.has("fma") == (__builtin_cpu_supports("fma") != 0));
    CHECK(host.has("avx512f") == (__builtin_cpu_supports("avx512f") != 0));
    CHECK(host.has("avx512vnni") == (__builtin_cpu_supports("avx512vnni") != 0));
}
