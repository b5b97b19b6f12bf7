// Prunes a cache folder to its size limit and removes what killed processes left, without ever examining all of a large
// one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "disk_cache/cache_folder.h"

namespace kvjit::rt {

/// The name of the folder, one of 256, for a cache's file. `entry`: a name that begins with 64 hexadecimal digits
/// (entry.h). Files with other names don't belong to the cache and are never removed.
std::string shard_name(std::string_view entry);
std::string entry_file_name(std::string_view entry);
std::string lock_file_name(std::string_view entry);
/// Whether the file is an entry whose digits are these.
bool is_entry_of(std::string_view file, std::string_view digest);

/// What a file in a shard is by its name.
enum class CacheFileKind { kOther, kEntry, kTemporary, kLock };
CacheFileKind kind_of(std::string_view file);
/// Whether a folder beside the entries' is named as a shard is.
bool is_shard_name(std::string_view folder);
/// Removes a temporary or lock file that no process holds; false if one does.
bool sweep(const CacheFolder& shard, const std::string& file);

/// Makes room for an entry of `bytes` that is about to be written to the shard `first`, which must exist in `folder`.
/// Examines whole shards, from `first` on, until it has seen 128 files or every shard; removes temporary and lock files
/// that no process holds; and, if the files seen and the entry exceed these shards' part of `max_bytes`, removes the
/// least recently used files down to 7/8 of it. Digests spread evenly, so the part represents the whole; if it is the
/// whole, the folder never exceeds `max_bytes`.
///
/// Returns the bytes that may be published, this entry included, before room must be made again. Any number of
/// processes may prune, read and publish at once: a file that one reads, another can only unlink. Never fails; what
/// can't be listed is skipped. Thread-safe.
std::int64_t make_room(const CacheFolder& folder, const std::string& first, std::int64_t bytes, std::int64_t max_bytes);

}  // namespace kvjit::rt
