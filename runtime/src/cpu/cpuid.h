// What CPUID and XGETBV say of this machine's instruction set.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace kvjit::rt {

/// The words that tell features. Zeros: a leaf that the machine lacks.
struct CpuWords {
    std::array<std::array<std::uint32_t, 4>, 4> leaves{};  // see Leaf in cpuid.cc; EAX, EBX, ECX, EDX
    std::uint64_t saved = 0;                               // XCR0: the registers that the system keeps for threads
};

CpuWords read_cpu();

/// Whether code may use the feature: the machine has it and all features that it implies, and the system keeps its
/// registers. A hypervisor may mask a feature and keep another one that implies it; a compiler would switch the first
/// one on again. False for a name that gen::x86_features() lacks. Allocates nothing.
bool has_feature(const CpuWords& words, std::string_view name);

}  // namespace kvjit::rt
