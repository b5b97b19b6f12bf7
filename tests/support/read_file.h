// What a file holds.
#pragma once

#include <fstream>
#include <iterator>
#include <string>

namespace kvjit::test {

/// All bytes of the file; "" where it can't be read.
inline std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace kvjit::test
