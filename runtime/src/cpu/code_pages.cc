#include "cpu/code_pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <system_error>

namespace kvjit::rt {
namespace {

constexpr unsigned kNoExecSeal = 8;  // MFD_NOEXEC_SEAL of Linux 6.3, newer than some libc
constexpr int kUnknown = -1;
std::atomic<int> remembered_mapping{kUnknown};

std::string text_of(int error) {
    return std::generic_category().message(error);
}

bool is_scarcity(int error) {
    return error == ENOMEM || error == ENOSPC || error == EMFILE || error == ENFILE || error == EAGAIN;
}

gen::Error out_of_memory(std::size_t bytes, int error) {
    return {KVJIT_OUT_OF_MEMORY,
            "no memory for " + std::to_string(bytes) + " bytes of code: " + text_of(error) +
                " (limits: address space, ulimit -v; mappings, vm.max_map_count; descriptors, ulimit -n)",
            "memory",
            static_cast<std::int64_t>(bytes),
            0,
            -1};
}

/// Creates a file in memory with `bytes` allocated. Executable files may be forbidden (vm.memfd_noexec): this one is
/// mapped executable, never executed as a file.
int make_file(std::size_t bytes, MemoryFile& file) {
    rlimit limit{};  // past this limit, growing a file raises SIGXFSZ, which ends the process
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes > limit.rlim_cur) return EFBIG;
    file = MemoryFile(memfd_create("kvjit", MFD_CLOEXEC | kNoExecSeal));
    if (!file.open() && errno == EINVAL) file = MemoryFile(memfd_create("kvjit", MFD_CLOEXEC));
    if (!file.open()) return errno;
    return posix_fallocate(file.fd(), 0, static_cast<off_t>(bytes));
}

/// Returns 0, or an errno.
int map_view(View& view, std::size_t bytes, int protection, int flags, int fd) {
    void* at = mmap(nullptr, bytes, protection, flags, fd, 0);
    if (at == MAP_FAILED) return errno;
    view = View(at, bytes);
    return 0;
}

std::size_t page_bytes() {
    return static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

/// Tries one page in this way, to the end.
gen::Result<void> probe(CodeMapping mapping) {
    gen::Result<CodePages> pages = CodePages::map(page_bytes(), mapping);
    if (!pages) return std::unexpected(pages.error());
    const CodeSegment all{0, page_bytes(), PROT_READ | PROT_EXEC};
    return pages->seal({&all, 1});
}

}  // namespace

gen::Result<CodeMapping> code_mapping() {
    if (const int known = remembered_mapping; known != kUnknown) return static_cast<CodeMapping>(known);
    std::string reasons;
    for (const CodeMapping mapping : {CodeMapping::kProtect, CodeMapping::kTwice}) {
        const gen::Result<void> works = probe(mapping);
        if (works) {
            remembered_mapping = static_cast<int>(mapping);
            return mapping;
        }
        if (works.error().status == KVJIT_OUT_OF_MEMORY) return std::unexpected(works.error());
        reasons += (reasons.empty() ? "" : "; ") + works.error().message;
    }
    return gen::fail(KVJIT_BAD_TARGET, "target",
                     "this process may not run code that it makes: " + reasons +
                         ". A policy forbids it (PR_SET_MDWE, systemd's MemoryDenyWriteExecute, SELinux's execmem, a "
                         "seccomp filter); the file, a limit of files' sizes (ulimit -f), too: allow one of the two "
                         "ways, memfd_create or mprotect with PROT_EXEC");
}

View& View::operator=(View&& other) noexcept {
    std::swap(at_, other.at_);
    std::swap(bytes_, other.bytes_);
    return *this;
}

void View::shrink(std::size_t bytes) {
    if (bytes >= bytes_) return;
    munmap(at_ + bytes, bytes_ - bytes);
    bytes_ = bytes;
}

MemoryFile::~MemoryFile() {
    if (open()) close(fd_);
}

gen::Result<CodePages> CodePages::map(std::size_t bytes, CodeMapping mapping) {
    CodePages pages;
    const int error = bytes == 0 ? 0 : pages.try_map(bytes, mapping);
    if (error == 0) return pages;
    if (is_scarcity(error)) return std::unexpected(out_of_memory(bytes, error));
    remembered_mapping = kUnknown;
    return gen::fail(KVJIT_BAD_TARGET, "target", "a file in memory can't be mapped: " + text_of(error));
}

int CodePages::try_map(std::size_t bytes, CodeMapping mapping) {
    if (mapping == CodeMapping::kTwice) return try_map_twice(bytes);
    return map_view(used_, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

// The executable view replaces the reserved address range once all is written.
int CodePages::try_map_twice(std::size_t bytes) {
    if (const int error = make_file(bytes, file_); error != 0) return error;
    if (const int error = map_view(used_, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1); error != 0) return error;
    return map_view(written_, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.fd());
}

gen::Result<void> CodePages::seal(std::span<const CodeSegment> segments) {
    written_ = View();
    for (const CodeSegment& segment : segments) {
        const int error = try_seal(segment);
        if (error == 0) continue;
        if (is_scarcity(error)) return std::unexpected(out_of_memory(segment.bytes, error));
        remembered_mapping = kUnknown;
        const std::string call = file_.open() ? "a file in memory can't be mapped" : "mprotect";
        return gen::fail(KVJIT_BAD_TARGET, "target", call + ": " + text_of(error));
    }
    file_ = MemoryFile();
    return {};
}

int CodePages::try_seal(const CodeSegment& segment) {
    char* at = used_.at() + segment.offset;
    if (!file_.open()) return mprotect(at, segment.bytes, segment.protection) == 0 ? 0 : errno;
    // Private: what a program writes to its data stays in this process, and is not shared with a forked one.
    const int flags = MAP_PRIVATE | MAP_FIXED;
    const auto offset = static_cast<off_t>(segment.offset);
    return mmap(at, segment.bytes, segment.protection, flags, file_.fd(), offset) != MAP_FAILED ? 0 : errno;
}

}  // namespace kvjit::rt
