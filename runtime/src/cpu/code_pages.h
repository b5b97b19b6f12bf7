// Pages for machine code, never writable and executable at once, under W^X policies too.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "generator/error.h"

namespace kvjit::rt {

/// How written pages become executable.
enum class CodeMapping {
    kProtect,  // mprotect makes them executable
    kTwice,    // a file in memory: written through one view of it, run in another
};

/// The way that works in this process: mprotect where it is allowed. Where a policy forbids it (PR_SET_MDWE, systemd's
/// MemoryDenyWriteExecute, SELinux's execmem, a seccomp filter), a file mapped twice. A way that has worked is
/// remembered. Errors: KVJIT_BAD_TARGET where neither way is allowed, KVJIT_OUT_OF_MEMORY. Thread-safe.
gen::Result<CodeMapping> code_mapping();

/// Owns a mapping.
class View {
public:
    View() = default;
    View(void* at, std::size_t bytes) : at_(static_cast<char*>(at)), bytes_(bytes) {}
    View(View&& other) noexcept : at_(std::exchange(other.at_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    View& operator=(View&& other) noexcept;
    ~View() { shrink(0); }
    char* at() const { return at_; }
    std::size_t bytes() const { return bytes_; }
    /// Unmaps whole pages past the first `bytes`.
    void shrink(std::size_t bytes);

private:
    char* at_ = nullptr;
    std::size_t bytes_ = 0;
};

/// Owns the descriptor of a file in memory, or none.
class MemoryFile {
public:
    explicit MemoryFile(int fd = -1) : fd_(fd) {}
    MemoryFile(MemoryFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    MemoryFile& operator=(MemoryFile&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~MemoryFile();
    int fd() const { return fd_; }
    bool open() const { return fd_ >= 0; }

private:
    int fd_;
};

/// Whole pages of a CodePages, and their protection: PROT_READ, PROT_WRITE, PROT_EXEC.
struct CodeSegment {
    std::size_t offset;
    std::size_t bytes;
    int protection;
};

/// Errors of both functions: KVJIT_OUT_OF_MEMORY; KVJIT_BAD_TARGET where a policy was imposed after code_mapping()
/// found a way: calling it again finds the other one, or reports that there is none.
class CodePages {
public:
    /// Maps `bytes` of zeros, whole pages.
    static gen::Result<CodePages> map(std::size_t bytes, CodeMapping mapping);

    /// The pages' address for writing, until seal().
    char* writable() const { return written_.at() ? written_.at() : used_.at(); }
    /// The pages' final address.
    char* address() const { return used_.at(); }

    /// Ends the writing: pages get their protections.
    gen::Result<void> seal(std::span<const CodeSegment> segments);
    /// Unmaps pages past the first `bytes`.
    void shrink(std::size_t bytes) { used_.shrink(bytes); }

private:
    int try_map(std::size_t bytes, CodeMapping mapping);
    int try_map_twice(std::size_t bytes);
    int try_seal(const CodeSegment& segment);

    View used_;
    View written_;     // the second view, if mapped twice
    MemoryFile file_;  // the file of both views, if mapped twice
};

}  // namespace kvjit::rt
