// Files that a command reads whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "result.h"

namespace kvjit::tool {

/// All of a file of `max_bytes` at most; "-" is standard input, and a pipe will do, too. The error names the file.
Result<std::string> read_file(const std::string& name, std::size_t max_bytes = SIZE_MAX);

}  // namespace kvjit::tool
