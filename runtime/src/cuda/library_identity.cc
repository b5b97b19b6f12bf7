#include "cuda/library_identity.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>

#include "cuda/elf_view.h"

namespace kvjit::rt {
namespace {

/// A file, open to be read.
class File {
public:
    explicit File(const std::string& path) : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    ~File() {
        if (descriptor_ >= 0) close(descriptor_);
    }
    int descriptor() const { return descriptor_; }

private:
    int descriptor_;
};

/// Its bytes; none where they can't be had.
class Mapping {
public:
    Mapping(const File& file, std::size_t size) : size_(size) {
        if (size != 0) start_ = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
    }
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    ~Mapping() {
        if (start_ != MAP_FAILED) munmap(start_, size_);
    }
    std::string_view bytes() const {
        return start_ == MAP_FAILED ? std::string_view() : std::string_view(static_cast<const char*>(start_), size_);
    }

private:
    void* start_ = MAP_FAILED;
    std::size_t size_;
};

std::string describe_time(const timespec& time) {
    const std::string nanoseconds = std::to_string(time.tv_nsec);
    return std::to_string(time.tv_sec) + "." + std::string(9 - nanoseconds.size(), '0') + nanoseconds;
}

}  // namespace

std::optional<std::string> describe_library(const std::string& path) {
    const File file(path);
    struct stat status{};
    if (file.descriptor() < 0 || fstat(file.descriptor(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
    const Mapping mapping(file, static_cast<std::size_t>(status.st_size));
    const std::optional<ElfView> elf = ElfView::open(mapping.bytes());
    if (!elf) return {};
    return path.substr(path.rfind('/') + 1) + " " + path + " size=" + std::to_string(status.st_size) +
           " mtime=" + describe_time(status.st_mtim) + " build=" + elf->build_id() + "\n";
}

}  // namespace kvjit::rt
