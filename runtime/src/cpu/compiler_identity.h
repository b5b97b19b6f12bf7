// Identifies the compiler that a process would use, without loading it.
#pragma once

#include <optional>
#include <string>

namespace kvjit::rt {

/// A line each for the plugin at `path`, a resolved one, and for the libclang-cpp and libLLVM that the dynamic linker
/// would load for it, see LibraryFile::describe. Nothing if `path` is no plugin or find_library misses one of them:
/// after loading the plugin, a second call describes the loaded ones.
std::optional<std::string> describe_compiler(const std::string& path);

}  // namespace kvjit::rt
