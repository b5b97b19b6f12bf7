// The machine's features, against LLVM's own idea of them.
#include "cpu/cpuid.h"

#include <llvm/ADT/StringMap.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/X86TargetParser.h>

#include "support.h"

using namespace kvjit;

namespace {

bool has(const rt::CpuWords& words, std::string_view name) {
    return gen::has_feature(rt::features_of(words), name);
}

}  // namespace

TEST_CASE("a feature is there if LLVM finds it and all that it implies") {
    const llvm::StringMap<bool> machine = llvm::sys::getHostCPUFeatures();
    for (const gen::X86Feature& feature : gen::x86_features()) {
        CAPTURE(std::string(feature.name));
        llvm::StringMap<bool> implied;
        llvm::X86::updateImpliedFeatures(feature.name, true, implied);
        bool expected = machine.lookup(feature.name);
        for (const gen::X86Feature& other : gen::x86_features())
            expected &= !implied.lookup(other.name) || machine.lookup(other.name);
        CHECK(has(rt::read_cpu(), feature.name) == expected);
    }
}

TEST_CASE("a machine that has every bit has every feature") {
    rt::CpuWords all;
    for (auto& leaf : all.leaves) leaf.fill(~0u);
    all.saved = ~std::uint64_t{0};
    for (const gen::X86Feature& feature : gen::x86_features()) {
        CAPTURE(std::string(feature.name));
        CHECK(has(all, feature.name));
        CHECK_FALSE(has(rt::CpuWords(), feature.name));
    }
}

TEST_CASE("without a feature none is there that implies it, and no other one goes") {
    rt::CpuWords all;
    for (auto& leaf : all.leaves) leaf.fill(~0u);
    all.saved = ~std::uint64_t{0};
    for (std::size_t word = 0; word < 16; ++word) {
        for (int bit = 0; bit < 32; ++bit) {
            rt::CpuWords masked = all;
            masked.leaves[word / 4][word % 4] &= ~(1u << bit);
            const gen::X86Features left = rt::features_of(masked);
            llvm::StringMap<bool> gone;
            for (const gen::X86Feature& feature : gen::x86_features())
                gone[feature.name] = !gen::has_feature(left, feature.name);
            for (const gen::X86Feature& feature : gen::x86_features()) {
                llvm::StringMap<bool> implied;
                llvm::X86::updateImpliedFeatures(feature.name, true, implied);
                for (const gen::X86Feature& other : gen::x86_features()) {
                    const bool broken = implied.lookup(other.name) && gone.lookup(other.name);
                    if (broken && !gone.lookup(feature.name)) FAIL(feature.name << " implies " << other.name);
                }
            }
        }
    }
}

TEST_CASE("registers that the system doesn't keep are not used") {
    rt::CpuWords words;
    for (auto& leaf : words.leaves) leaf.fill(~0u);
    words.saved = 0x3;
    CHECK(has(words, "sse4.2"));
    CHECK_FALSE(has(words, "avx"));
    words.saved = 0x7;
    CHECK(has(words, "avx2"));
    CHECK_FALSE(has(words, "avx512f"));
    words.saved = 0xe7;
    CHECK(has(words, "avx512fp16"));
    CHECK_FALSE(has(words, "amx-int8"));
}
