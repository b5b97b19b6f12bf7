// Blocks in host memory, moved by the CPU's threads.
#pragma once

#include "blocks/work.h"

namespace kvjit::rt {

/// Errors: those of the default executor, before anything is moved.
gen::Result<void> move_on_host(std::span<const BlockWork> works, const kvjit_blocks_options& options);

}  // namespace kvjit::rt
