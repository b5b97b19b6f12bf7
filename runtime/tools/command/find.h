// Finds the command that words call.
#pragma once

#include <span>
#include <string>

#include "command/command.h"

namespace kvjit::tool {

/// Removes the command's words from the front of `words`. A group is found where no further word names a command of it.
/// Errors: "'foo' is no command of kvjit; it takes ...".
Result<Called> find_called(const Command& root, std::span<const std::string>& words);

}  // namespace kvjit::tool
