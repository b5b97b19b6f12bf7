// The system calls of the disk cache, in one place, so that a test can make any one of them fail or end the process.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvjit::rt {

/// Each function is the system call in its comment, repeated while a signal interrupts it. Returns the call's own
/// result, or -errno. `folder` is a folder's descriptor; `name` is relative to it. Thread-safe.
class FileCalls {
public:
    virtual ~FileCalls() = default;
    virtual int make_folder(int folder, const char* name, mode_t mode);      // mkdirat
    virtual int open(int folder, const char* name, int flags, mode_t mode);  // openat; always close-on-exec
    virtual int status(int fd, struct stat* out);                            // fstat
    virtual int status_of(int folder, const char* name, struct stat* out);   // fstatat, links not followed
    virtual ssize_t read(int fd, void* out, std::size_t bytes);              // read
    virtual ssize_t write(int fd, const void* from, std::size_t bytes);      // write
    virtual int sync(int fd);                                                // fsync
    virtual int rename(int folder, const char* from, const char* to);        // renameat
    virtual int remove(int folder, const char* name);                        // unlinkat
    virtual int remove_folder(int folder, const char* name);                 // unlinkat: an empty folder
    virtual int touch(int folder, const char* name);                         // utimensat, links not followed: now
    virtual int lock(int fd);                                                // flock: exclusive, no waiting
    /// openat, readdir: up to `at_most` names in the folder.
    virtual std::expected<std::vector<std::string>, int> list(int folder, std::size_t at_most);
};

/// The real system calls.
FileCalls& system_calls();

/// Writes all of `bytes`. Returns 0 or -errno.
int write_all(FileCalls& calls, int fd, std::string_view bytes);

/// Owns a descriptor.
class Fd {
public:
    explicit Fd(int fd = -1) : fd_(fd) {}
    Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Fd& operator=(Fd&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Fd();
    /// Negative: nothing is open; the value is the -errno of the failure.
    int get() const { return fd_; }
    bool open() const { return fd_ >= 0; }

private:
    int fd_;
};

}  // namespace kvjit::rt
