#include "filled_cache.h"

#include <doctest/doctest.h>
#include <utime.h>

#include <algorithm>
#include <fstream>

namespace kvjit::test {

namespace fs = std::filesystem;

FilledCache::FilledCache() {
    const ChildResult made = run_kvjit({"bundle", "create", folder_.path("out.kvjb"), "op=Merge,head_dim=64",
                                        "op=KeyValueCache,head_dim=64", "--targets", "x86-64-v3"});
    REQUIRE_MESSAGE(made.exit_code == 0, made.err);
}

std::vector<fs::path> FilledCache::entries() const {
    std::vector<fs::path> all;
    for (const auto& file : fs::recursive_directory_iterator(path())) {
        if (file.path().extension() == ".kvjit") all.push_back(file.path());
    }
    std::ranges::sort(all);
    return all;
}

void FilledCache::set_age(const fs::path& file, std::time_t seconds) {
    const utimbuf times = {std::time(nullptr) - seconds, std::time(nullptr) - seconds};
    REQUIRE(utime(file.c_str(), &times) == 0);
}

void change_byte(const fs::path& file, std::streamoff at) {
    std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekg(at);
    const char old = static_cast<char>(bytes.get());
    bytes.seekp(at);
    bytes.put(static_cast<char>(old ^ 1));
}

}  // namespace kvjit::test
