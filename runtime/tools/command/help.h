// The help of a command, as text and as a man page.
#pragma once

#include <string>

#include "command/command.h"

namespace kvjit::tool {

/// What --help prints: usage, options, examples, exit status.
std::string help_text(const Command& root, const Called& called);

/// A man page of the whole command, of the same texts: what `man kvjit` shows.
std::string man_page(const Command& root);

/// "kvjit 0.1.0"
std::string version_text();

}  // namespace kvjit::tool
