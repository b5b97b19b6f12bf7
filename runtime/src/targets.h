// Targets by name, interned: one object for each distinct target, alive as long as the process, compared by address.
#pragma once

#include <string_view>

#include "generator/target.h"

namespace kvjit::rt {

/// "host" or a name that gen::named_target takes. Errors: KVJIT_BAD_TARGET. Thread-safe.
gen::Result<const gen::Target*> find_target(std::string_view name);

}  // namespace kvjit::rt
