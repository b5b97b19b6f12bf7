// This machine's instruction set.
#pragma once

#include "generator/target.h"

namespace kvjit::rt {

/// From CPUID and XGETBV (LLVM's TargetParser), every known feature signed. Computed once. Thread-safe.
const gen::Target& host_target();

}  // namespace kvjit::rt
