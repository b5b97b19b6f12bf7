// `kvjit inspect --diff`: what differs between two kernels' identities.
#pragma once

#include <string>

namespace kvjit::tool {

/// Prints for each program what differs. `before` and `after` are each identities as --emit identity prints them, a
/// file of such text ("/dev/fd/63", say) or "-" for standard input; an argument with a semicolon is text. Exit status
/// 0, or 2 where either can't be read or parsed.
int diff(const std::string& before, const std::string& after);

}  // namespace kvjit::tool
