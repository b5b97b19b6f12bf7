// The build id that the linker has put into a library's file.
#pragma once

#include <string>

namespace kvjit::test {

/// In hexadecimal digits. Throws std::runtime_error where there is none of 20 bytes.
std::string build_id(const std::string& path);

/// As if the file, which otherwise stays what it is, came from another build.
void change_build_id(const std::string& path);

}  // namespace kvjit::test
