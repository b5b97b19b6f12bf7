// How much memory this process may yet take.
#pragma once

#include <cstddef>

namespace kvjit::tool {

/// Bytes, as the kernel estimates them, and no more than the process and its control group may have. What can't be
/// asked does not limit.
std::size_t available_memory();

}  // namespace kvjit::tool
