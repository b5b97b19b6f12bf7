#include "cpu/cpuid.h"

#include <algorithm>
#include <iterator>

// In a virtual machine each CPUID traps, which takes microseconds: glibc has read the words at the process's start. Its
// header, sys/platform/x86.h, is not valid C++ to Clang; it defines name and numbers.
#if __has_include(<sys/platform/x86.h>)
#define KVJIT_ASK_GLIBC 1
/// Returns four words of CPUID, and others after them.
extern "C" const std::uint32_t* cpuid_words(unsigned number) __asm__("__x86_get_cpuid_feature_leaf");
#else
#define KVJIT_ASK_GLIBC 0
#include <cpuid.h>
#endif

namespace kvjit::rt {
namespace {

enum Leaf { kLeaf1, kLeaf7, kLeaf7Sub1, kExtended1 };
enum Word { kAx, kBx, kCx, kDx };

/// Register state that the system must save, as bits of XCR0.
enum Saved : std::uint64_t {
    kNone = 0,
    kXsave = 1,          // anything at all
    kAvx = 0x6,          // SSE and AVX
    kAvx512 = 0xe6,      // and masks, upper halves, the upper sixteen
    kAmx = 0x3ULL << 17  // tiles and their configuration
};
constexpr std::uint32_t kOsxsave = 1u << 27;  // leaf 1, ECX: XGETBV is available

/// A feature's leaf, word and bit, from Intel's and AMD's manuals.
struct Row {
    std::string_view name;
    Leaf leaf;
    Word word;
    int bit;
    Saved saved;
};
constexpr Row kRows[] = {
    {"cmov", kLeaf1, kDx, 15, kNone},
    {"cx8", kLeaf1, kDx, 8, kNone},
    {"fxsr", kLeaf1, kDx, 24, kNone},
    {"mmx", kLeaf1, kDx, 23, kNone},
    {"sse", kLeaf1, kDx, 25, kNone},
    {"sse2", kLeaf1, kDx, 26, kNone},
    {"crc32", kLeaf1, kCx, 20, kNone},
    {"cx16", kLeaf1, kCx, 13, kNone},
    {"popcnt", kLeaf1, kCx, 23, kNone},
    {"sahf", kExtended1, kCx, 0, kNone},
    {"sse3", kLeaf1, kCx, 0, kNone},
    {"sse4.1", kLeaf1, kCx, 19, kNone},
    {"sse4.2", kLeaf1, kCx, 20, kNone},
    {"ssse3", kLeaf1, kCx, 9, kNone},
    {"avx", kLeaf1, kCx, 28, kAvx},
    {"avx2", kLeaf7, kBx, 5, kAvx},
    {"bmi", kLeaf7, kBx, 3, kNone},
    {"bmi2", kLeaf7, kBx, 8, kNone},
    {"f16c", kLeaf1, kCx, 29, kAvx},
    {"fma", kLeaf1, kCx, 12, kAvx},
    {"lzcnt", kExtended1, kCx, 5, kNone},
    {"movbe", kLeaf1, kCx, 22, kNone},
    {"xsave", kLeaf1, kCx, 26, kXsave},
    {"avx512bw", kLeaf7, kBx, 30, kAvx512},
    {"avx512cd", kLeaf7, kBx, 28, kAvx512},
    {"avx512dq", kLeaf7, kBx, 17, kAvx512},
    {"avx512f", kLeaf7, kBx, 16, kAvx512},
    {"avx512vl", kLeaf7, kBx, 31, kAvx512},
    {"adx", kLeaf7, kBx, 19, kNone},
    {"aes", kLeaf1, kCx, 25, kNone},
    {"amx-bf16", kLeaf7, kDx, 22, kAmx},
    {"amx-fp16", kLeaf7Sub1, kAx, 21, kAmx},
    {"amx-int8", kLeaf7, kDx, 25, kAmx},
    {"amx-tile", kLeaf7, kDx, 24, kAmx},
    {"avx512bf16", kLeaf7Sub1, kAx, 5, kAvx512},
    {"avx512bitalg", kLeaf7, kCx, 12, kAvx512},
    {"avx512fp16", kLeaf7, kDx, 23, kAvx512},
    {"avx512ifma", kLeaf7, kBx, 21, kAvx512},
    {"avx512vbmi", kLeaf7, kCx, 1, kAvx512},
    {"avx512vbmi2", kLeaf7, kCx, 6, kAvx512},
    {"avx512vnni", kLeaf7, kCx, 11, kAvx512},
    {"avx512vp2intersect", kLeaf7, kDx, 8, kAvx512},
    {"avx512vpopcntdq", kLeaf7, kCx, 14, kAvx512},
    {"avxifma", kLeaf7Sub1, kAx, 23, kAvx},
    {"avxneconvert", kLeaf7Sub1, kDx, 5, kAvx},
    {"avxvnni", kLeaf7Sub1, kAx, 4, kAvx},
    {"avxvnniint16", kLeaf7Sub1, kDx, 10, kAvx},
    {"avxvnniint8", kLeaf7Sub1, kDx, 4, kAvx},
    {"fma4", kExtended1, kCx, 16, kAvx},
    {"gfni", kLeaf7, kCx, 8, kNone},
    {"pclmul", kLeaf1, kCx, 1, kNone},
    {"prfchw", kExtended1, kCx, 8, kNone},
    {"rdrnd", kLeaf1, kCx, 30, kNone},
    {"rdseed", kLeaf7, kBx, 18, kNone},
    {"sha", kLeaf7, kBx, 29, kNone},
    {"sha512", kLeaf7Sub1, kAx, 0, kNone},
    {"sse4a", kExtended1, kCx, 6, kNone},
    {"tbm", kExtended1, kCx, 21, kNone},
    {"vaes", kLeaf7, kCx, 9, kAvx},
    {"vpclmulqdq", kLeaf7, kCx, 10, kAvx},
    {"xop", kExtended1, kCx, 11, kAvx},
};

#if KVJIT_ASK_GLIBC
std::array<std::uint32_t, 4> read_leaf(Leaf leaf) {
    constexpr unsigned kNumbers[] = {0, 1, 6, 2};  // CPUID_INDEX_1, _7, _7_ECX_1, _80000001
    std::array<std::uint32_t, 4> words{};
    std::copy_n(cpuid_words(kNumbers[leaf]), words.size(), words.begin());
    return words;
}
#else
std::array<std::uint32_t, 4> read_leaf(Leaf leaf) {
    constexpr unsigned kNumbers[] = {1, 7, 7, 0x80000001}, kSubLeaves[] = {0, 0, 1, 0};
    std::array<std::uint32_t, 4> words{};
    if (leaf == kLeaf7Sub1 && read_leaf(kLeaf7)[kAx] < 1) return words;
    __get_cpuid_count(kNumbers[leaf], kSubLeaves[leaf], &words[kAx], &words[kBx], &words[kCx], &words[kDx]);
    return words;
}
#endif

std::uint64_t read_saved(const CpuWords& words) {
    if ((words.leaves[kLeaf1][kCx] & kOsxsave) == 0) return 0;
    std::uint32_t low = 0, high = 0;
    asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return std::uint64_t{high} << 32 | low;
}

}  // namespace

CpuWords read_cpu() {
    CpuWords words;
    for (const Leaf leaf : {kLeaf1, kLeaf7, kLeaf7Sub1, kExtended1}) words.leaves[leaf] = read_leaf(leaf);
    words.saved = read_saved(words);
    return words;
}

gen::X86Features features_of(const CpuWords& words) {
    const auto has = [&](const Row& row) {
        const bool present = (words.leaves[row.leaf][row.word] >> row.bit & 1) != 0;
        return present && (words.saved & row.saved) == row.saved;
    };
    gen::X86Features features;
    for (std::size_t i = 0; i < gen::x86_features().size(); ++i) {
        const Row* row = std::ranges::find(kRows, gen::x86_features()[i].name, &Row::name);
        features[i] = row != std::end(kRows) && has(*row);
    }
    return gen::consistent(features);
}

}  // namespace kvjit::rt
