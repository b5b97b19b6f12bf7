// A folder of files that are trusted when read and whole when written. What the files hold is not its business.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "disk_cache/file_calls.h"

namespace kvjit::rt {

/// Where a cache may lie.
struct CachePlace {
    std::string path;  // "": nowhere
    std::string home;  // the part of it that is never made; "": all that is missing is
};

/// $KVJIT_CACHE_DIR (set but empty: nowhere), else $XDG_CACHE_HOME/kvjit, else $HOME/.cache/kvjit; the latter two must
/// be absolute. A home folder is not ours to make: accounts without one name a folder that is to stay missing.
CachePlace default_cache_place();

/// A file of our own: regular, owned by the effective user, writable by nobody else.
bool is_trusted(const struct stat& file);

/// What the names of files end with that are still being written.
inline constexpr std::string_view kTemporarySuffix = ".tmp";

/// Why a file or folder was not handed out; `reason` completes a sentence that begins with its name.
struct ReadFailure {
    enum class Kind {
        kAbsent,      // no such file: the usual miss
        kUnreadable,  // the system would not say: nothing known about the file
        kUntrusted    // a link, somebody else's, writable by others, not a file, too large
    };
    Kind kind;
    std::string reason;
};

/// Immutable after open; thread-safe. Holds the folder's descriptor, so renaming the folder or changing the working
/// directory does not redirect it.
class CacheFolder {
public:
    /// Opens the folder, made with mode 0700 (and so its missing parents) if need be. The error is a sentence for a
    /// log: it can't be made or opened, belongs to another user, or others may write to it. `calls` must outlive it.
    static std::expected<CacheFolder, std::string> open(FileCalls& calls, const CachePlace& place);

    /// A folder in this one, under the same conditions, links not followed.
    std::expected<CacheFolder, ReadFailure> subfolder(const std::string& name) const;
    /// The same, made if need be.
    std::expected<CacheFolder, std::string> make_subfolder(const std::string& name) const;

    /// The whole file in private memory, and now the most recently used one. Opened without following a link or
    /// waiting for a pipe's writer. At most `limit` bytes.
    std::expected<std::string, ReadFailure> read(const std::string& name, std::size_t limit) const;

    /// Puts a file of these bytes, mode 0600, at `name` at once and durably: written and synced under another name,
    /// which ends in kTemporarySuffix and is locked meanwhile (flock), then renamed. Readers see the old file or the
    /// new one. The error is a sentence for a log; `name` then holds what it did before, or the new bytes if only
    /// making it durable failed.
    std::expected<void, std::string> write(const std::string& name, std::string_view bytes) const;

    /// Removes a file of any kind, or an empty folder. 0 or -errno.
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
