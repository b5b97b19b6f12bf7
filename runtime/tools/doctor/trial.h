// Tries what an engine would do with a path, and leaves nothing behind.
#pragma once

#include <optional>
#include <string>

#include "disk_cache/cache_folder.h"

namespace kvjit::tool {

/// Why files can't be kept in a folder, a sentence that names it; nothing: they can. Folders that are missing are made,
/// as an engine makes them, and removed again.
std::optional<std::string> why_no_folder(const rt::CachePlace& place);

/// Why a file can't be appended to, a sentence that names it; nothing: it can. One that is missing is made and removed
/// again.
std::optional<std::string> why_no_appending(const std::string& path);

}  // namespace kvjit::tool
