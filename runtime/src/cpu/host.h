// This machine's instruction set.
#pragma once

#include "generator/target.h"

namespace kvjit::rt {

/// The host's CPU as a target, without the features that KVJIT_CPU_MASK names. Computed once. Thread-safe.
const gen::Target& host_target();

}  // namespace kvjit::rt
