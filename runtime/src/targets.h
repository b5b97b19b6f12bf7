// Targets by name, interned: one object for each distinct target, alive as long as the process, compared by address.
#pragma once

#include <string_view>

#include "generator/target.h"

namespace kvjit::rt {

/// By a name that kvjit_target_create takes. Errors: KVJIT_BAD_TARGET; for a GPU that can't be used, KVJIT_CUDA_ERROR.
/// Thread-safe.
gen::Result<const gen::Target*> find_target(std::string_view name);

}  // namespace kvjit::rt
