#include "cpu/cpuid.h"

#include <cpuid.h>

#include <algorithm>
#include <iterator>

namespace kvjit::rt {
namespace {

enum Leaf { kLeaf1, kLeaf7, kLeaf7Sub1, kExtended1 };
enum Word { kAx, kBx, kCx, kDx };

/// What the system must keep, as bits of XCR0.
enum Saved : std::uint64_t {
    kNone = 0,
    kXsave = 1,          // anything at all
    kAvx = 0x6,          // SSE and AVX
    kAvx512 = 0xe6,      // and masks, upper halves, the upper sixteen
    kAmx = 0x3ULL << 17  // tiles and their configuration
};
constexpr std::uint32_t kOsxsave = 1u << 27;  // leaf 1, ECX: XGETBV can be used

/// Intel's and AMD's manuals give leaf, word and bit; LLVM 19's names, and what it takes each to imply.
struct Row {
    std::string_view name;
    Leaf leaf;
    Word word;
    int bit;
    Saved saved;
    std::array<std::string_view, 3> implied;
};
constexpr Row kRows[] = {
    {"cmov", kLeaf1, kDx, 15, kNone, {}},
    {"cx8", kLeaf1, kDx, 8, kNone, {}},
    {"fxsr", kLeaf1, kDx, 24, kNone, {}},
    {"mmx", kLeaf1, kDx, 23, kNone, {}},
    {"sse", kLeaf1, kDx, 25, kNone, {}},
    {"sse2", kLeaf1, kDx, 26, kNone, {"sse"}},
    {"crc32", kLeaf1, kCx, 20, kNone, {}},
    {"cx16", kLeaf1, kCx, 13, kNone, {}},
    {"popcnt", kLeaf1, kCx, 23, kNone, {}},
    {"sahf", kExtended1, kCx, 0, kNone, {}},
    {"sse3", kLeaf1, kCx, 0, kNone, {"sse2"}},
    {"sse4.1", kLeaf1, kCx, 19, kNone, {"ssse3"}},
    {"sse4.2", kLeaf1, kCx, 20, kNone, {"sse4.1"}},
    {"ssse3", kLeaf1, kCx, 9, kNone, {"sse3"}},
    {"avx", kLeaf1, kCx, 28, kAvx, {"sse4.2"}},
    {"avx2", kLeaf7, kBx, 5, kAvx, {"avx"}},
    {"bmi", kLeaf7, kBx, 3, kNone, {}},
    {"bmi2", kLeaf7, kBx, 8, kNone, {}},
    {"f16c", kLeaf1, kCx, 29, kAvx, {"avx"}},
    {"fma", kLeaf1, kCx, 12, kAvx, {"avx"}},
    {"lzcnt", kExtended1, kCx, 5, kNone, {}},
    {"movbe", kLeaf1, kCx, 22, kNone, {}},
    {"xsave", kLeaf1, kCx, 26, kXsave, {}},
    {"avx512bw", kLeaf7, kBx, 30, kAvx512, {"avx512f"}},
    {"avx512cd", kLeaf7, kBx, 28, kAvx512, {"avx512f"}},
    {"avx512dq", kLeaf7, kBx, 17, kAvx512, {"avx512f"}},
    {"avx512f", kLeaf7, kBx, 16, kAvx512, {"avx2", "f16c", "fma"}},
    {"avx512vl", kLeaf7, kBx, 31, kAvx512, {"avx512f"}},
    {"adx", kLeaf7, kBx, 19, kNone, {}},
    {"aes", kLeaf1, kCx, 25, kNone, {"sse2"}},
    {"amx-bf16", kLeaf7, kDx, 22, kAmx, {"amx-tile"}},
    {"amx-fp16", kLeaf7Sub1, kAx, 21, kAmx, {"amx-tile"}},
    {"amx-int8", kLeaf7, kDx, 25, kAmx, {"amx-tile"}},
    {"amx-tile", kLeaf7, kDx, 24, kAmx, {}},
    {"avx512bf16", kLeaf7Sub1, kAx, 5, kAvx512, {"avx512bw"}},
    {"avx512bitalg", kLeaf7, kCx, 12, kAvx512, {"avx512bw"}},
    {"avx512fp16", kLeaf7, kDx, 23, kAvx512, {"avx512bw", "avx512dq", "avx512vl"}},
    {"avx512ifma", kLeaf7, kBx, 21, kAvx512, {"avx512f"}},
    {"avx512vbmi", kLeaf7, kCx, 1, kAvx512, {"avx512bw"}},
    {"avx512vbmi2", kLeaf7, kCx, 6, kAvx512, {"avx512bw"}},
    {"avx512vnni", kLeaf7, kCx, 11, kAvx512, {"avx512f"}},
    {"avx512vp2intersect", kLeaf7, kDx, 8, kAvx512, {"avx512f"}},
    {"avx512vpopcntdq", kLeaf7, kCx, 14, kAvx512, {"avx512f"}},
    {"avxifma", kLeaf7Sub1, kAx, 23, kAvx, {"avx2"}},
    {"avxneconvert", kLeaf7Sub1, kDx, 5, kAvx, {"avx2"}},
    {"avxvnni", kLeaf7Sub1, kAx, 4, kAvx, {"avx2"}},
    {"avxvnniint16", kLeaf7Sub1, kDx, 10, kAvx, {"avx2"}},
    {"avxvnniint8", kLeaf7Sub1, kDx, 4, kAvx, {"avx2"}},
    {"fma4", kExtended1, kCx, 16, kAvx, {"avx", "sse4a"}},
    {"gfni", kLeaf7, kCx, 8, kNone, {"sse2"}},
    {"pclmul", kLeaf1, kCx, 1, kNone, {"sse2"}},
    {"prfchw", kExtended1, kCx, 8, kNone, {}},
    {"rdrnd", kLeaf1, kCx, 30, kNone, {}},
    {"rdseed", kLeaf7, kBx, 18, kNone, {}},
    {"sha", kLeaf7, kBx, 29, kNone, {"sse2"}},
    {"sha512", kLeaf7Sub1, kAx, 0, kNone, {"avx2"}},
    {"sse4a", kExtended1, kCx, 6, kNone, {"sse3"}},
    {"tbm", kExtended1, kCx, 21, kNone, {}},
    {"vaes", kLeaf7, kCx, 9, kAvx, {"aes", "avx2"}},
    {"vpclmulqdq", kLeaf7, kCx, 10, kAvx, {"avx", "pclmul"}},
    {"xop", kExtended1, kCx, 11, kAvx, {"fma4"}},
};

std::array<std::uint32_t, 4> read_leaf(std::uint32_t leaf, std::uint32_t sub_leaf) {
    std::array<std::uint32_t, 4> words{};
    __get_cpuid_count(leaf, sub_leaf, &words[kAx], &words[kBx], &words[kCx], &words[kDx]);
    return words;
}

std::uint64_t read_saved(const CpuWords& words) {
    if ((words.leaves[kLeaf1][kCx] & kOsxsave) == 0) return 0;
    std::uint32_t low = 0, high = 0;
    asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return std::uint64_t{high} << 32 | low;
}

}  // namespace

CpuWords read_cpu() {
    CpuWords words;
    words.leaves[kLeaf1] = read_leaf(1, 0);
    words.leaves[kLeaf7] = read_leaf(7, 0);
    const std::uint32_t last_sub_leaf = words.leaves[kLeaf7][kAx];
    if (last_sub_leaf >= 1) words.leaves[kLeaf7Sub1] = read_leaf(7, 1);
    words.leaves[kExtended1] = read_leaf(0x80000001, 0);
    words.saved = read_saved(words);
    return words;
}

bool has_feature(const CpuWords& words, std::string_view name) {
    const Row* row = std::ranges::find(kRows, name, &Row::name);
    if (row == std::end(kRows)) return false;
    const bool present = (words.leaves[row->leaf][row->word] >> row->bit & 1) != 0;
    const bool kept = (words.saved & row->saved) == row->saved;
    return present && kept && std::ranges::all_of(row->implied, [&](std::string_view implied) {
               return implied.empty() || has_feature(words, implied);
           });
}

}  // namespace kvjit::rt
