// What CPUID and XGETBV say of this machine's instruction set.
#pragma once

#include <array>
#include <cstdint>

#include "generator/x86.h"

namespace kvjit::rt {

/// The words that tell features. Zeros: a leaf that the machine lacks.
struct CpuWords {
    std::array<std::array<std::uint32_t, 4>, 4> leaves{};  // see Leaf in cpuid.cc; EAX, EBX, ECX, EDX
    std::uint64_t saved = 0;                               // XCR0: the registers that the system keeps for threads
};

CpuWords read_cpu();

/// What code may use: the machine has it and what it implies (gen::consistent), and the system keeps its registers.
/// Allocates nothing.
gen::X86Features features_of(const CpuWords& words);

}  // namespace kvjit::rt
