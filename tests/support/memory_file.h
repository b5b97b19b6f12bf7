// Files that lie in no folder.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>

namespace kvjit::test {

/// A regular file in memory, as large as `size` says: what no bytes are given for is a hole. Throws if there is no
/// memory for it.
class MemoryFile {
public:
    explicit MemoryFile(std::span<const std::byte> bytes, std::size_t size = 0)
        : file_(memfd_create("kvjit-test", MFD_CLOEXEC)) {
        const bool written = write(file_, bytes.data(), bytes.size()) == std::ssize(bytes);
        if (!written || (size != 0 && ftruncate(file_, static_cast<off_t>(size)) != 0)) {
            throw std::runtime_error("no file in memory");
        }
    }
    ~MemoryFile() { close(file_); }
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;
    std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

private:
    int file_;
};

}  // namespace kvjit::test
