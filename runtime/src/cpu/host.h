// This machine's instruction set.
#pragma once

#include "generator/target.h"

namespace kvjit::rt {

/// Every known feature signed (cpuid.h); the name to tune for is LLVM's. Computed once. Thread-safe.
const gen::Target& host_target();

}  // namespace kvjit::rt
