// The engine's messages that are not errors. The library itself prints nothing.
#pragma once

#include <functional>
#include <string>

#include "kvjit/kvjit.h"

namespace kvjit::rt {

using Log = std::function<void(kvjit_log_level, const std::string&)>;

}  // namespace kvjit::rt
