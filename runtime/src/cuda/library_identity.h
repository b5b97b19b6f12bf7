// What tells a library from another of the same name, without loading it.
#pragma once

#include <optional>
#include <string>

namespace kvjit::rt {

/// "libnvrtc.so.13 /usr/local/cuda/lib64/libnvrtc.so.13 size=109338064 mtime=1760564160.000000000 build=65be..." and a
/// newline, for an absolute path. Nothing if it is no readable ELF file. Touches the file's first pages only.
std::optional<std::string> describe_library(const std::string& path);

}  // namespace kvjit::rt
