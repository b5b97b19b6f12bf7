#include "bundle/bundle_bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "disk_cache/file_calls.h"

namespace kvjit::rt {
namespace {

std::unexpected<std::string> failed(const char* what, int error) {
    return std::unexpected(std::string("can't be ") + what + ": " + std::generic_category().message(error));
}

class BundleFile final : public BundleBytes {
public:
    BundleFile(Fd file, std::uint64_t size) : file_(std::move(file)), size_(size) {}

    std::uint64_t size() const override { return size_; }

    std::expected<std::string, std::string> read(std::uint64_t offset, std::size_t bytes) const override {
        std::string read(bytes, '\0');
        std::size_t done = 0;
        while (done < bytes) {
            const ssize_t got =
                ::pread(file_.get(), read.data() + done, bytes - done, static_cast<off_t>(offset + done));
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) return failed("read", errno);
            if (got == 0) break;
            done += static_cast<std::size_t>(got);
        }
        read.resize(done);
        return read;
    }

private:
    Fd file_;
    std::uint64_t size_;
};

class BundleMemory final : public BundleBytes {
public:
    explicit BundleMemory(std::string_view bytes) : bytes_(bytes) {}

    std::uint64_t size() const override { return bytes_.size(); }

    std::expected<std::string, std::string> read(std::uint64_t offset, std::size_t bytes) const override {
        return std::string(bytes_.substr(std::min<std::uint64_t>(offset, bytes_.size()), bytes));
    }

private:
    std::string_view bytes_;
};

}  // namespace

std::expected<std::unique_ptr<BundleBytes>, std::string> open_bundle_file(const std::string& path) {
    // O_NONBLOCK: doesn't wait for the writer of a pipe.
    Fd file(system_calls().open(AT_FDCWD, path.c_str(), O_RDONLY | O_NONBLOCK, 0));
    if (!file.open()) return failed("opened", -file.get());
    struct stat status{};
    if (const int error = system_calls().status(file.get(), &status); error < 0) return failed("read", -error);
    if (!S_ISREG(status.st_mode)) return std::unexpected("is not a regular file");
    return std::make_unique<BundleFile>(std::move(file), static_cast<std::uint64_t>(status.st_size));
}

std::unique_ptr<BundleBytes> bundle_in_memory(std::string_view bytes) {
    return std::make_unique<BundleMemory>(bytes);
}

}  // namespace kvjit::rt
