// The compiler that the command uses.
#pragma once

#include <string>

namespace kvjit::tool {

/// The compiler beside libkvjit, since the command lies elsewhere; "" leaves the choice to the environment.
std::string compiler_path();

}  // namespace kvjit::tool
