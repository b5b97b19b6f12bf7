// This machine's instruction set.
#pragma once

#include "generator/target.h"

namespace kvjit::rt {

/// What cpuid.h says of it. Computed once. Thread-safe.
const gen::Target& host_target();

}  // namespace kvjit::rt
