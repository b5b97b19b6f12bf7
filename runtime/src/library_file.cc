#include "library_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string_view>

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

std::string describe_time(const timespec& time) {
    const std::string nanoseconds = std::to_string(time.tv_nsec);
    return std::to_string(time.tv_sec) + "." + std::string(9 - nanoseconds.size(), '0') + nanoseconds;
}

}  // namespace

/// The file's bytes; none if they can't be read.
class LibraryFile::Mapping {
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

std::optional<LibraryFile> LibraryFile::open(const std::string& path) {
    const File file(path);
    struct stat status{};
    if (file.descriptor() < 0 || fstat(file.descriptor(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
    auto mapping = std::make_shared<const Mapping>(file, static_cast<std::size_t>(status.st_size));
    const std::optional<ElfView> elf = ElfView::open(mapping->bytes());
    if (!elf) return {};
    return LibraryFile(path, status, std::move(mapping), *elf);
}

std::string LibraryFile::describe(const std::string& name) const {
    if (const std::string id = elf_.build_id(); !id.empty()) return name + " build=" + id + "\n";
    return name + " " + path_ + " size=" + std::to_string(status_.st_size) +
           " mtime=" + describe_time(status_.st_mtim) + "\n";
}

}  // namespace kvjit::rt
