// The backend of CPU targets.
#pragma once

#include <memory>
#include <string>

#include "backend.h"

namespace kvjit::rt {

/// Reads KVJIT_DEBUG.
std::unique_ptr<Backend> make_cpu_backend(const BackendOptions& options);

/// Whether this machine's CPU runs code for `target`, and this process may load it. Errors: KVJIT_BAD_TARGET names the
/// feature that is missing, or says what forbids it; KVJIT_OUT_OF_MEMORY.
gen::Result<void> check_cpu(const gen::Target& target);

}  // namespace kvjit::rt
