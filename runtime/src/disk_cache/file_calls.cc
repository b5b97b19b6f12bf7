#include "disk_cache/file_calls.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string_view>

namespace kvjit::rt {
namespace {

template <class Call>
auto uninterrupted(Call call) {
    auto result = call();
    while (result < 0 && errno == EINTR) result = call();
    return result < 0 ? static_cast<decltype(result)>(-errno) : result;
}

bool is_self_or_parent(std::string_view name) {
    return name == "." || name == "..";
}

struct CloseStream {
    void operator()(DIR* stream) const { ::closedir(stream); }
};

}  // namespace

int FileCalls::make_folder(int folder, const char* name, mode_t mode) {
    return uninterrupted([&] { return ::mkdirat(folder, name, mode); });
}

int FileCalls::open(int folder, const char* name, int flags, mode_t mode) {
    return uninterrupted([&] { return ::openat(folder, name, flags | O_CLOEXEC, mode); });
}

int FileCalls::status(int fd, struct stat* out) {
    return uninterrupted([&] { return ::fstat(fd, out); });
}

int FileCalls::status_of(int folder, const char* name, struct stat* out) {
    return uninterrupted([&] { return ::fstatat(folder, name, out, AT_SYMLINK_NOFOLLOW); });
}

ssize_t FileCalls::read(int fd, void* out, std::size_t bytes) {
    return uninterrupted([&] { return ::read(fd, out, bytes); });
}

ssize_t FileCalls::write(int fd, const void* from, std::size_t bytes) {
    return uninterrupted([&] { return ::write(fd, from, bytes); });
}

int FileCalls::sync(int fd) {
    return uninterrupted([&] { return ::fsync(fd); });
}

int FileCalls::rename(int folder, const char* from, const char* to) {
    return uninterrupted([&] { return ::renameat(folder, from, folder, to); });
}

int FileCalls::remove(int folder, const char* name) {
    return uninterrupted([&] { return ::unlinkat(folder, name, 0); });
}

int FileCalls::remove_folder(int folder, const char* name) {
    return uninterrupted([&] { return ::unlinkat(folder, name, AT_REMOVEDIR); });
}

int FileCalls::touch(int folder, const char* name) {
    return uninterrupted([&] { return ::utimensat(folder, name, nullptr, AT_SYMLINK_NOFOLLOW); });
}

int FileCalls::lock(int fd) {
    return uninterrupted([&] { return ::flock(fd, LOCK_EX | LOCK_NB); });
}

std::expected<std::vector<std::string>, int> FileCalls::list(int folder, std::size_t at_most) {
    // A new open file description: readdir moves the position, which duplicates would share.
    const int fd = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return std::unexpected(-errno);
    const std::unique_ptr<DIR, CloseStream> stream(::fdopendir(fd));
    if (!stream) {
        ::close(fd);
        return std::unexpected(-ENOMEM);
    }
    std::vector<std::string> names;
    while (names.size() < at_most) {
        const dirent* item = ::readdir(stream.get());
        if (item == nullptr) break;
        if (!is_self_or_parent(item->d_name)) names.emplace_back(item->d_name);
    }
    return names;
}

FileCalls& system_calls() {
    static FileCalls calls;
    return calls;
}

int write_all(FileCalls& calls, int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t put = calls.write(fd, bytes.data(), bytes.size());
        if (put <= 0) return put < 0 ? static_cast<int>(put) : -EIO;
        bytes.remove_prefix(static_cast<std::size_t>(put));
    }
    return 0;
}

Fd::~Fd() {
    if (fd_ >= 0) ::close(fd_);
}

}  // namespace kvjit::rt
