// This machine's instruction set, from CPUID and XGETBV.
#pragma once

#include <array>
#include <cstdint>

#include "generator/x86.h"

namespace kvjit::rt {

/// CPUID's words with feature bits. Zeros: a leaf that the machine lacks.
struct CpuWords {
    std::array<std::array<std::uint32_t, 4>, 4> leaves{};  // see Leaf in cpuid.cc; EAX, EBX, ECX, EDX
    std::uint64_t saved = 0;                               // XCR0: the registers that the system saves for threads
};

CpuWords read_cpu();

/// The features that code may use: the machine has them and what they imply (gen::consistent), and the system saves
/// their registers. Allocates nothing.
gen::X86Features features_of(const CpuWords& words);

}  // namespace kvjit::rt
