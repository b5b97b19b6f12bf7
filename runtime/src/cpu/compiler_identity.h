// Which compiler a process would use, without loading it.
#pragma once

#include <optional>
#include <string>

namespace kvjit::rt {

/// One line each for the plugin at `path`, a resolved one, and for the libclang-cpp and libLLVM that the dynamic linker
/// would take for it, see LibraryFile::describe. Nothing if `path` is no plugin or find_library misses one: load the
/// plugin, then ask again, and the loaded ones answer.
std::optional<std::string> describe_compiler(const std::string& path);

}  // namespace kvjit::rt
