// The commands of `kvjit spec`.
#pragma once

#include "command/command.h"

namespace kvjit::tool {

extern const Command kSpecExplain, kSpecList;

}  // namespace kvjit::tool
