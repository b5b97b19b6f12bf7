// How often a loop turns, by its constants.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "inspect/sass/code.h"

namespace kvjit::tool::sass {

/// Turns of a loop whose counter begins below its step and is compared with a constant; nothing for others. `turn`: the
/// instructions of one turn, which ends with the branch back.
std::optional<std::int64_t> constant_turns(std::span<const Instruction* const> turn);

}  // namespace kvjit::tool::sass
