// A folder whose files are trusted when read, and complete when written. Knows nothing of their contents.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "disk_cache/file_calls.h"

namespace kvjit::rt {

/// A possible place of a cache.
struct CachePlace {
    std::string path;                              // "": no cache
    std::string home;                              // the part of it that is never created; "": all missing folders are
    std::string_view called = "the cache folder";  // in messages
    bool follows_link = true;                      // whether the path itself may be a symbolic link
};

/// $KVJIT_CACHE_DIR (set but empty: no cache), else $XDG_CACHE_HOME/kvjit, else $HOME/.cache/kvjit; the latter two must
/// be absolute. kvjit never creates the home folder: accounts without one name a folder that must stay missing.
CachePlace default_cache_place();
/// What the environment has instead of a place: "HOME is not set". Precondition: the default place's path is "".
std::string why_no_cache_place();

/// Whether a file is ours: regular, owned by the effective user, not writable by others.
bool is_trusted(const struct stat& file);

/// The suffix of files that are still being written.
inline constexpr std::string_view kTemporarySuffix = ".tmp";

/// Why a file or folder was not opened; `reason` completes a sentence that begins with its name.
struct ReadFailure {
    enum class Kind {
        kAbsent,      // no such file: the usual miss
        kUnreadable,  // an error of the system: nothing is known about the file
        kUntrusted    // a link, another user's, writable by others, not a regular file, too large
    };
    Kind kind;
    std::string reason;
};

/// Immutable after open; thread-safe. Holds the folder's descriptor, so renaming the folder or changing the working
/// directory does not redirect it.
class CacheFolder {
public:
    /// Opens the folder; creates it, and its missing parents, with mode 0700 if needed. The error is a sentence for a
    /// log: it can't be created or opened, belongs to another user, or others may write to it. `calls` must outlive it.
    static std::expected<CacheFolder, std::string> open(FileCalls& calls, const CachePlace& place);

    /// Opens a folder in this one, under the same conditions, without following links.
    std::expected<CacheFolder, ReadFailure> subfolder(const std::string& name) const;
    /// The same, but creates the folder if needed.
    std::expected<CacheFolder, std::string> make_subfolder(const std::string& name) const;

    /// Reads a whole file into private memory. Doesn't follow a link or wait for a pipe's writer. At most `limit`
    /// bytes.
    std::expected<std::string, ReadFailure> read(const std::string& name, std::size_t limit) const;
    /// Marks a file as the most recently used.
    void touch(const std::string& name) const;

    /// Writes a file of these bytes, mode 0600, atomically and durably: it is written and synced under another name,
    /// which ends in kTemporarySuffix and is locked meanwhile (flock), then renamed to `name`. Readers see the old file
    /// or the new one. The error is a sentence for a log; `name` then has its old contents, or is gone if only
    /// making the new ones durable failed.
    std::expected<void, std::string> write(const std::string& name, std::string_view bytes) const;

    /// Removes a file of any kind, or an empty folder. Returns 0 or -errno.
    int remove(const std::string& name) const;

    FileCalls& calls() const { return *calls_; }
    int descriptor() const { return descriptor_.get(); }
    const std::string& path() const { return path_; }

private:
    CacheFolder(FileCalls& calls, Fd descriptor, std::string path)
        : calls_(&calls), descriptor_(std::move(descriptor)), path_(std::move(path)) {}

    std::string sentence(std::string_view action, const std::string& name, int error) const;

    FileCalls* calls_;
    Fd descriptor_;
    std::string path_;
};

}  // namespace kvjit::rt
