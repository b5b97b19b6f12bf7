// Keeps a cache folder within its size, and free of what killed processes left behind.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "disk_cache/cache_folder.h"

namespace kvjit::rt {

/// The names of the cache's files, `digest` being 64 hexadecimal digits. Files of other names are not the cache's and
/// are left alone.
std::string entry_file_name(std::string_view digest);
std::string lock_file_name(std::string_view digest);

/// Looks at every file of the folder once: removes temporary and lock files that are older than an hour and in nobody's
/// use, and, if the entries take more than `max_bytes`, those least recently used until they take 7/8 of it, so that
/// the next publish does not have to prune again. Returns the bytes that the entries then take; nothing if the folder
/// can't be listed. Any number of processes may prune, read and publish at once: what one reads, another can only
/// unlink. Thread-safe.
std::optional<std::int64_t> prune(const CacheFolder& folder, std::int64_t max_bytes);

}  // namespace kvjit::rt
