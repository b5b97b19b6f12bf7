// Folders that go with the test that made them.
#pragma once

#include <string>
#include <vector>

namespace kvjit::test {

/// A new folder under the system's temporary one, removed with all it holds. Failures are thrown as
/// std::filesystem::filesystem_error.
class TemporaryFolder {
public:
    TemporaryFolder();
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    /// No part of it is a link.
    const std::string& path() const { return path_; }
    std::string path(const std::string& name) const { return path_ + '/' + name; }
    /// Makes the file, and the folders above it; gives its path.
    std::string write(const std::string& name, const std::string& content) const;

private:
    std::string path_;
};

/// Paths of the files that `folder` and the folders in it hold, as far as their names end so.
std::vector<std::string> files_in(const std::string& folder, const std::string& suffix = "");

}  // namespace kvjit::test
