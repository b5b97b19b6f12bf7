// A disk cache that has something.
#pragma once

#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "child.h"
#include "support/temporary_folder.h"

namespace kvjit::test {

/// A disk cache with the entries of three programs, which the command finds as its own while this object lives.
class FilledCache {
public:
    FilledCache();

    std::string path() const { return folder_.path("cache"); }
    std::vector<std::filesystem::path> entries() const;
    /// Last used so many seconds ago.
    static void set_age(const std::filesystem::path& file, std::time_t seconds);

private:
    TemporaryFolder folder_;
    Variable variable_{"KVJIT_CACHE_DIR", path()};
};

/// Changes a bit of a file's byte.
void change_byte(const std::filesystem::path& file, std::streamoff at);

}  // namespace kvjit::test
