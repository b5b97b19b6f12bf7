// This machine's instruction set.
#pragma once

#include "generator/target.h"

namespace kvjit::rt {

/// The host's CPU as a target. Computed once. Thread-safe.
const gen::Target& host_target();

}  // namespace kvjit::rt
