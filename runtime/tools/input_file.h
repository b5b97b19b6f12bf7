// Files that a command reads whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "result.h"

namespace kvjit::tool {

/// Reads a whole file of at most `max_bytes`, or "-", standard input; pipes work, too. The error names the file.
Result<std::string> read_file(const std::string& name, std::size_t max_bytes);

}  // namespace kvjit::tool
