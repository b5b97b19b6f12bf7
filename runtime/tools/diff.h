// `kvjit inspect --diff`: what differs between two kernels' identities.
#pragma once

#include <string>

namespace kvjit::tool {

/// Prints for each program what differs. Each of the two is identities as --emit identity prints them, a file that has
/// such, "/dev/fd/63" say, or "-" for standard input. What has a semicolon is a text. Exit status 0, or 2 where one
/// can't be read or is no such text.
int diff(const std::string& before, const std::string& after);

}  // namespace kvjit::tool
