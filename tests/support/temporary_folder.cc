#include "support/temporary_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace kvjit::test {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder() : path_(fs::canonical(fs::temp_directory_path()) / "kvjit-test-XXXXXX") {
    if (mkdtemp(path_.data()) != nullptr) return;
    throw fs::filesystem_error("mkdtemp", path_, std::error_code(errno, std::generic_category()));
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    fs::permissions(path_, fs::perms::owner_all, ignored);  // a test may have left it unwritable
    fs::remove_all(path_, ignored);
}

std::string TemporaryFolder::write(const std::string& name, const std::string& content) const {
    const fs::path file = path(name);
    fs::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << content;
    return file;
}

std::vector<std::string> files_in(const std::string& folder, const std::string& suffix) {
    std::vector<std::string> paths;
    for (const auto& item : fs::recursive_directory_iterator(folder)) {
        if (!item.is_directory() && item.path().string().ends_with(suffix)) paths.push_back(item.path().string());
    }
    return paths;
}

}  // namespace kvjit::test
