#include "doctor/trial.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

namespace kvjit::tool {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
    std::error_code error;
    return fs::symlink_status(path, error).type() != fs::file_type::not_found;
}

/// Folders of a path that are missing, and are so again at the end.
class MissingFolders {
public:
    explicit MissingFolders(const fs::path& path) {
        for (fs::path level = path; !level.empty() && !is_there(level); level = level.parent_path()) {
            missing_.push_back(level);
        }
    }
    ~MissingFolders() {
        for (const fs::path& level : missing_) ::rmdir(level.c_str());  // the innermost first
    }
    MissingFolders(const MissingFolders&) = delete;
    MissingFolders& operator=(const MissingFolders&) = delete;

private:
    std::vector<fs::path> missing_;
};

std::string reason(int error) {
    return std::strerror(error);
}

/// As long as an entry of the disk cache: a full disk, a quota and a file system without inodes are only seen so.
constexpr std::size_t kTrialBytes = 64 * 1024;

std::optional<std::string> why_no_file(const rt::CacheFolder& folder) {
    const std::string name = "doctor-" + std::to_string(::getpid());
    const auto written = folder.write(name, std::string(kTrialBytes, '.'));
    folder.remove(name);
    return written ? std::nullopt : std::optional(written.error());
}

}  // namespace

std::optional<std::string> why_no_folder(const rt::CachePlace& place) {
    const MissingFolders missing(place.path);
    const auto folder = rt::CacheFolder::open(rt::system_calls(), place);
    if (!folder) return folder.error();
    if (::access(place.path.c_str(), W_OK | X_OK) == 0) return why_no_file(*folder);
    return std::string(place.called) + " " + place.path + " can't be written to: " + reason(errno);
}

std::optional<std::string> why_no_appending(const std::string& path) {
    const bool was_there = is_there(path);
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
    if (file < 0) return path + " can't be written: " + reason(errno);
    ::close(file);
    if (!was_there) ::unlink(path.c_str());
    return std::nullopt;
}

}  // namespace kvjit::tool
