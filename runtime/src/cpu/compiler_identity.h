// Which compiler a process would use, without loading it.
#pragma once

#include <optional>
#include <string>

namespace kvjit::rt {

/// One line each for the plugin at `path` and for the libclang-cpp and libLLVM that the dynamic linker would take for
/// it: "libLLVM.so.19.1 /usr/lib/... size=129271672 mtime=1750723200.000000000 build=5f1c...". Nothing if `path` is no
/// plugin or find_library misses one: load the plugin, then ask again, and the loaded ones answer.
std::optional<std::string> describe_compiler(const std::string& path);

}  // namespace kvjit::rt
