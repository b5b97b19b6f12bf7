// Keeps a cache folder within its size, and free of what killed processes left behind, without ever looking at all of a
// large one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "disk_cache/cache_folder.h"

namespace kvjit::rt {

/// The names of the cache's files and of the folder, one of 256, that they lie in. `entry`: a name that begins with 64
/// hexadecimal digits (entry.h). Files of other names are not the cache's and are left alone.
std::string shard_name(std::string_view entry);
std::string entry_file_name(std::string_view entry);
std::string lock_file_name(std::string_view entry);
/// Whether it is an entry's file's, whose digits are these.
bool is_entry_of(std::string_view file, std::string_view digest);

/// Makes room for an entry of `bytes` that is about to be written to the shard `first`, which must exist in `folder`.
/// Looks at whole shards, from `first` on, until it has seen 128 files or every shard; removes temporary and lock files
/// that nobody holds; and, if the files it has seen and the entry take more than these shards' part of `max_bytes`, the
/// least recently used ones down to 7/8 of that. Digests spread evenly, so the part stands for the whole; where it is
/// the whole, the folder never takes more than `max_bytes`.
///
/// Returns what may be published, this entry included, before room must be made again. Any number of processes may do
/// so, read and publish at once: what one reads, another can only unlink. Never fails; what can't be listed is passed
/// over. Thread-safe.
std::int64_t make_room(const CacheFolder& folder, const std::string& first, std::int64_t bytes, std::int64_t max_bytes);

}  // namespace kvjit::rt
