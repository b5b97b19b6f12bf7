// How much more memory this process may allocate.
#pragma once

#include <cstddef>

namespace kvjit::tool {

/// Bytes: the kernel's estimate, capped by what the process and its control group may have. A limit that can't be read
/// is ignored.
std::size_t available_memory();

}  // namespace kvjit::tool
