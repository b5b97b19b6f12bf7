#include "disk_cache/cache_folder.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <string>
#include <system_error>

#include "environment.h"

namespace kvjit::rt {
namespace {

constexpr mode_t kOthersMayWrite = S_IWGRP | S_IWOTH;
constexpr int kDrafts = 16;  // names that a writer tries, if other processes take its files for abandoned

std::string error_text(int error) {
    return std::generic_category().message(-error);
}

constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY;

/// mkdir -p with mode 0700 for every level that is missing, up to the home folder.
int make_folders(FileCalls& calls, const CachePlace& place) {
    if (place.path == place.home) return -ENOENT;
    const int made = calls.make_folder(AT_FDCWD, place.path.c_str(), 0700);
    if (made == -EEXIST) return 0;
    const std::size_t slash = place.path.find_last_of('/');
    if (made != -ENOENT || slash == std::string::npos || slash == 0) return made;
    const int parent = make_folders(calls, {place.path.substr(0, slash), place.home});
    if (parent < 0) return parent;
    const int again = calls.make_folder(AT_FDCWD, place.path.c_str(), 0700);
    return again == -EEXIST ? 0 : again;
}

Fd open_or_make(FileCalls& calls, const CachePlace& place) {
    const int flags = place.follows_link ? kFolderFlags : kFolderFlags | O_NOFOLLOW;
    Fd folder(calls.open(AT_FDCWD, place.path.c_str(), flags, 0));
    if (folder.get() != -ENOENT) return folder;
    const int made = make_folders(calls, place);
    return Fd(made < 0 ? made : calls.open(AT_FDCWD, place.path.c_str(), flags, 0));
}

std::string why_not_opened(FileCalls& calls, const CachePlace& place, int error) {
    struct stat status{};
    const bool is_link = calls.status_of(AT_FDCWD, place.path.c_str(), &status) >= 0 && S_ISLNK(status.st_mode);
    if (is_link && !place.follows_link) return "it is a symbolic link";
    if (error == -ENOENT && !place.home.empty()) return "there is no home folder " + place.home;
    return error_text(error);
}

/// "" if the folder is fit to hold files that will be run.
std::string objection(FileCalls& calls, int folder) {
    struct stat status{};
    if (const int error = calls.status(folder, &status); error < 0) return error_text(error);
    if (status.st_uid != ::geteuid()) return "it belongs to another user";
    if (status.st_mode & kOthersMayWrite) return "other users may write to it";
    return "";
}

std::string why_untrusted(const struct stat& file) {
    if (!S_ISREG(file.st_mode)) return "is not a regular file";
    return file.st_uid != ::geteuid() ? "belongs to another user" : "may be written by other users";
}

/// Reads up to out.size() bytes; fewer if the file ends before.
ssize_t read_all(FileCalls& calls, int fd, std::string& out) {
    std::size_t done = 0;
    while (done < out.size()) {
        const ssize_t got = calls.read(fd, out.data() + done, out.size() - done);
        if (got < 0) return got;
        if (got == 0) break;
        done += static_cast<std::size_t>(got);
    }
    return static_cast<ssize_t>(done);
}

/// Past this limit a write raises SIGXFSZ, which ends the process.
bool exceeds_file_size_limit(std::size_t bytes) {
    rlimit limit{};
    return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes > limit.rlim_cur;
}

/// A name that no other writer uses, in this process or another one; O_EXCL catches collisions.
std::string temporary_name(const std::string& name) {
    static std::atomic<unsigned> count{0};
    const auto now = std::chrono::system_clock::now().time_since_epoch().count();
    std::string text = name;
    for (const auto number : {std::int64_t{::getpid()}, std::int64_t{now}, std::int64_t{++count}}) {
        text += '.' + std::to_string(number);
    }
    return text += kTemporarySuffix;
}

/// A new file whose bytes are yet to be written. It is locked while it is open; the files of killed writers are not.
struct Draft {
    std::string name;
    Fd file;
};

/// Locks a new file. False if another process was faster, took it for abandoned and removes it, which can't happen
/// where there are no locks.
bool claim(FileCalls& calls, const Fd& file) {
    if (calls.lock(file.get()) == -EWOULDBLOCK) return false;
    struct stat status{};
    return calls.status(file.get(), &status) < 0 || status.st_nlink > 0;
}

Draft open_draft(FileCalls& calls, int folder, const std::string& name) {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
    for (int tries = 1;; ++tries) {
        std::string temporary = temporary_name(name);
        Fd file(calls.open(folder, temporary.c_str(), kFlags, 0600));
        if (!file.open() || tries == kDrafts || claim(calls, file)) return {std::move(temporary), std::move(file)};
    }
}

int fill(FileCalls& calls, const Fd& file, std::string_view bytes) {
    const int written = write_all(calls, file.get(), bytes);
    return written < 0 ? written : calls.sync(file.get());
}

}  // namespace

CachePlace default_cache_place() {
    if (const auto chosen = environment_text(Variable::kCacheDir)) return {*chosen, ""};
    const std::string cache_home = environment_text("XDG_CACHE_HOME").value_or("");
    if (cache_home.starts_with('/')) return {cache_home + "/kvjit", ""};
    const std::string home = environment_text("HOME").value_or("");
    return home.starts_with('/') ? CachePlace{home + "/.cache/kvjit", home} : CachePlace{};
}

std::string why_no_cache_place() {
    if (environment_text(Variable::kCacheDir)) return "KVJIT_CACHE_DIR is empty";
    const auto home = environment_text("HOME");
    return home ? "HOME is \"" + *home + "\", no absolute path" : "HOME is not set";
}

bool is_trusted(const struct stat& file) {
    return S_ISREG(file.st_mode) && file.st_uid == ::geteuid() && !(file.st_mode & kOthersMayWrite);
}

std::expected<CacheFolder, std::string> CacheFolder::open(FileCalls& calls, const CachePlace& place) {
    Fd folder = open_or_make(calls, place);
    const std::string why = folder.open() ? objection(calls, folder.get()) : why_not_opened(calls, place, folder.get());
    if (!why.empty()) return std::unexpected(std::string(place.called) + ' ' + place.path + " can't be used: " + why);
    return CacheFolder(calls, std::move(folder), place.path);
}

std::expected<CacheFolder, ReadFailure> CacheFolder::subfolder(const std::string& name) const {
    using enum ReadFailure::Kind;
    Fd folder(calls_->open(descriptor(), name.c_str(), kFolderFlags | O_NOFOLLOW, 0));
    if (folder.get() == -ENOENT) return std::unexpected(ReadFailure{kAbsent, ""});
    const std::string why = folder.open() ? objection(*calls_, folder.get()) : error_text(folder.get());
    if (!why.empty()) return std::unexpected(ReadFailure{kUnreadable, "can't be used: " + why});
    return CacheFolder(*calls_, std::move(folder), path_ + '/' + name);
}

std::expected<CacheFolder, std::string> CacheFolder::make_subfolder(const std::string& name) const {
    const int made = calls_->make_folder(descriptor(), name.c_str(), 0700);
    if (made < 0 && made != -EEXIST) return std::unexpected(sentence("make", name, made));
    if (made == 0) calls_->sync(descriptor());  // files survive a crash only if the folder's name does
    auto folder = subfolder(name);
    if (folder) return std::move(*folder);
    return std::unexpected("the cache folder " + path_ + '/' + name + ' ' + folder.error().reason);
}

std::expected<std::string, ReadFailure> CacheFolder::read(const std::string& name, std::size_t limit) const {
    using enum ReadFailure::Kind;
    const auto fail = [](ReadFailure::Kind kind, std::string why) {
        return std::unexpected(ReadFailure{kind, std::move(why)});
    };
    const Fd file(calls_->open(descriptor(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0));
    if (file.get() == -ENOENT) return fail(kAbsent, "");
    if (file.get() == -ELOOP) return fail(kUntrusted, "is a symbolic link");
    if (!file.open()) return fail(kUnreadable, "can't be opened: " + error_text(file.get()));
    struct stat status{};
    if (const int error = calls_->status(file.get(), &status); error < 0) return fail(kUnreadable, error_text(error));
    if (!is_trusted(status)) return fail(kUntrusted, why_untrusted(status));
    if (status.st_size > static_cast<off_t>(limit)) return fail(kUntrusted, "is too large");
    std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
    const ssize_t got = read_all(*calls_, file.get(), bytes);
    if (got < 0) return fail(kUnreadable, "can't be read: " + error_text(static_cast<int>(got)));
    bytes.resize(static_cast<std::size_t>(got));
    return bytes;
}

std::expected<void, std::string> CacheFolder::write(const std::string& name, std::string_view bytes) const {
    const auto fail = [&](std::string_view action, int error) {
        return std::unexpected(sentence(action, name, error));
    };
    if (exceeds_file_size_limit(bytes.size())) return fail("write", -EFBIG);
    const Draft draft = open_draft(*calls_, descriptor(), name);
    if (!draft.file.open()) return fail("write", draft.file.get());
    const int filled = fill(*calls_, draft.file, bytes);
    const int renamed = filled < 0 ? filled : calls_->rename(descriptor(), draft.name.c_str(), name.c_str());
    if (renamed < 0) {
        calls_->remove(descriptor(), draft.name.c_str());
        return fail(filled < 0 ? "write" : "rename", renamed);
    }
    // The name must survive a crash, too, not only the bytes. EINVAL: a file system that syncs no folders.
    const int synced = calls_->sync(descriptor());
    if (synced < 0 && synced != -EINVAL) {
        calls_->remove(descriptor(), name.c_str());
        return fail("sync", synced);
    }
    return {};
}

void CacheFolder::touch(const std::string& name) const {
    calls_->touch(descriptor(), name.c_str());
}

int CacheFolder::remove(const std::string& name) const {
    const int error = calls_->remove(descriptor(), name.c_str());
    // For a folder Linux returns EISDIR, POSIX EPERM.
    if (error != -EISDIR && error != -EPERM) return error;
    const int removed = calls_->remove_folder(descriptor(), name.c_str());
    return removed == -ENOTDIR ? error : removed;
}

std::string CacheFolder::sentence(std::string_view action, const std::string& name, int error) const {
    return "can't " + std::string(action) + ' ' + path_ + '/' + name + ": " + error_text(error);
}

}  // namespace kvjit::rt
